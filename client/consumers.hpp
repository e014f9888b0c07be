#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "client/delivery_buffer.hpp"

namespace stoat::client {

// The consumers of one channel. One is *active* from basic.consume until it is cancelled by either
// side, during which the broker may send deliveries under its tag; it is *held* until the program
// releases it, so that what was delivered can still be taken after the cancel.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariant: a consumer that is neither active nor held does not exist.
class Consumers {
 public:
  explicit Consumers(MachineContext& context) : context_(context) {}

  // A tag that no active consumer of the channel has.
  std::string unused_tag() const;
  // Starts active and held. nullopt: the tag is in use on this channel.
  std::optional<ConsumerId> add(const std::string& tag, bool no_ack);
  std::optional<ConsumerId> active(std::string_view tag) const;
  bool is_active(ConsumerId id) const;
  // REQUIRES: the consumer exists.
  const std::string& tag(ConsumerId id) const;

  // What the program has not taken of a released consumer must go back to the queue.
  enum class Taken { by_program, give_back, settled };
  // REQUIRES: the consumer exists.
  Taken deliver(ConsumerId id, Delivery delivery);
  void next(ConsumerId id, SteadyTime deadline, DeliveryBuffer::Next done);

  // No longer active: as this program wanted, or because of an error.
  void stop(ConsumerId id);
  void fail(ConsumerId id, const Error& reason);
  // No longer held. The tags of deliveries that must go back to the queue.
  std::vector<std::uint64_t> release(ConsumerId id);
  // The channel has ended.
  void stop_all();
  void fail_all(const Error& reason);

  // Answers waiters whose time has passed; the earliest deadline of the others, or max().
  SteadyTime expire(SteadyTime now);

 private:
  struct Consumer {
    Consumer(MachineContext& context, std::string consumer_tag, bool auto_ack)
        : tag(std::move(consumer_tag)), no_ack(auto_ack), buffer(context) {}
    std::string tag;
    bool no_ack;
    bool active = true;
    bool held = true;
    DeliveryBuffer buffer;
  };
  Consumer* find(ConsumerId id);
  void deactivate(ConsumerId id, Consumer& consumer);

  MachineContext& context_;
  std::map<ConsumerId, std::unique_ptr<Consumer>> consumers_;
  std::map<std::string, ConsumerId, std::less<>> active_by_tag_;
  ConsumerId last_id_;
};

}  // namespace stoat::client
