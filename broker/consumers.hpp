#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "broker/consumer.hpp"
#include "broker/home.hpp"
#include "broker/outbox.hpp"

namespace stoat::broker {

// The consumers of one queue, and whose turn it is: round robin inside a priority level, the
// highest level first, skipping those without credit. A list per level holds who may have credit;
// whoever is found without is taken off and comes back when that changes, so that idle consumers
// cost nothing.
//
// Owner: Queue. Thread: the home's worker.
// Invariants: a consumer with credit is listed; with a single active consumer only the active one
// is ever chosen; a consumer that left is kept while messages it took are unacknowledged.
class Consumers {
 public:
  Consumers(QueueId queue, bool single_active) : queue_(queue), single_active_(single_active) {}
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;

  std::size_t count() const { return present_.size(); }
  bool empty() const { return present_.empty(); }
  bool single_active() const { return single_active_; }
  bool has_exclusive() const { return !empty() && present_.front()->exclusive; }

  Consumer& add(const ConsumerSpec& spec, Queue& queue, Outbox& outbox);
  // It takes no more; a lease it holds goes back.
  void remove(Consumer& consumer);
  // All of them, oldest first: left(consumer) before each goes.
  template <class Left>
  void remove_all(Left left) {
    while (!present_.empty()) {
      left(*present_.front());
      remove(*present_.front());
    }
  }

  // Whose turn it is for a message that is at hand, or nullptr. A consumer that only lacks a lease
  // asks for one here.
  Consumer* next();
  // That consumer, if it is there and has credit for a message that is at hand.
  Consumer* find_able(ConnectionId connection, ConsumerId id);
  // It was given a message.
  void delivered(Consumer& consumer);
  // One of its messages was settled or came back. May be its end: the reference dies with this.
  void settled(Consumer& consumer);
  // Its credit may have changed for the better.
  void reconsider(Consumer& consumer);

  void add_lease(Consumer& consumer, std::uint32_t count);
  void set_channel_limited(Consumer& consumer, bool limited);
  // What of the leases was not used goes back to the channels.
  void return_leases();

 private:
  struct Level {
    std::size_t consumers = 0;
    Consumer* first = nullptr;
    Consumer* last = nullptr;
  };

  bool has_credit(Consumer& consumer);
  void list(Consumer& consumer);
  void unlist(Level& level, Consumer& consumer);
  void choose_active();
  void return_lease(Consumer& consumer);

  const QueueId queue_;
  const bool single_active_;
  std::vector<std::unique_ptr<Consumer>> present_;  // by age
  std::vector<std::unique_ptr<Consumer>> left_;     // with unacknowledged messages
  std::map<std::int32_t, Level, std::greater<>> levels_;
  Consumer* active_ = nullptr;  // with single_active_
  std::vector<Consumer*> leased_;
};

}  // namespace stoat::broker
