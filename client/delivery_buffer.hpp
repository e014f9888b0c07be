#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "client/completion.hpp"
#include "client/machine_context.hpp"
#include "stoat/client/message.hpp"

namespace stoat::client {

// The deliveries of one consumer between the channel and the program, and those who wait for one.
// Deliveries go out in the order they came, waiters are served in the order they asked.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariant: not both deliveries and waiters. The size of what is held is part of
// MachineContext::buffered_bytes.
class DeliveryBuffer {
 public:
  static constexpr std::size_t kMaxWaiters = 4096;

  // Answered with nullopt: nothing more will come, or nothing came before the deadline.
  using Next = Completion<std::optional<Delivery>>;

  explicit DeliveryBuffer(MachineContext& context) : context_(context) {}
  ~DeliveryBuffer();
  DeliveryBuffer(const DeliveryBuffer&) = delete;
  DeliveryBuffer& operator=(const DeliveryBuffer&) = delete;

  void push(Delivery delivery);
  // What is held is handed out first, also after end() and fail().
  void next(SteadyTime deadline, Next done);
  // No more deliveries will come, as this program wanted.
  void end();
  // No more deliveries will come, for this reason. The first of end() and fail() stands.
  void fail(const Error& error);
  // Nobody will ask again: lets go of everything and tells the tags that are not settled.
  std::vector<std::uint64_t> release();

  // Answers waiters whose time has passed; the earliest deadline of the others, or max().
  SteadyTime expire(SteadyTime now);

 private:
  Delivery pop();
  void answer_all_waiters();
  Result<std::optional<Delivery>> ended_answer() const;

  struct Waiter {
    SteadyTime deadline;
    Next done;
  };

  MachineContext& context_;
  std::deque<Delivery> deliveries_;
  std::deque<Waiter> waiters_;
  bool ended_ = false;
  std::optional<Error> error_;  // with ended_: why
};

}  // namespace stoat::client
