#pragma once

#include <deque>
#include <string_view>

#include "base/clock.hpp"
#include "client/completion.hpp"
#include "wire/method_types.hpp"

namespace stoat::client {

// The methods of one channel that wait for their reply, in the order they were sent: a broker
// replies in that order. One whose time has passed keeps its place until its reply comes, so that
// the reply is not taken for that of a later one.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariant: a Done is called at most once, and by fail_all() at the latest.
class RpcQueue {
 public:
  static constexpr std::size_t kMaxPending = 4096;

  // The reply's payload, or why there is none. Throws wire::ConnectionError when the payload
  // cannot be decoded.
  using Done = UniqueFunction<void(Result<std::string_view>)>;
  // What to do about a reply that came after its time, such as cancelling a consumer nobody has.
  using Late = UniqueFunction<void()>;

  bool full() const { return pending_.size() >= kMaxPending; }
  // other_reply: a second method that may answer, as get-empty does. REQUIRES: !full().
  void push(wire::MethodId reply, wire::MethodId other_reply, SteadyTime deadline, Done done,
            Late late = {});
  // Whether the method that is due next waits for this reply.
  bool expects(wire::MethodId id) const;
  // Throws wire::ConnectionError unless expects(id).
  void on_reply(wire::MethodId id, std::string_view payload);

  // Whether anyone waits.
  bool awaited() const;
  // Ends those whose time has passed; the earliest deadline of the others, or max().
  SteadyTime expire(SteadyTime now, const Error& timeout);
  void fail_all(const Error& error);

 private:
  struct Pending {
    wire::MethodId reply;
    wire::MethodId other_reply;
    SteadyTime deadline;
    Done done;  // empty: its time has passed
    Late late;
  };
  std::deque<Pending> pending_;
};

}  // namespace stoat::client
