#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"

namespace stoat::broker::admin {

enum class Topic { stats };

using SubscriptionId = std::uint64_t;

// What one session wants to hear of regularly. A notification is made when its time has come and
// the session can send it; times that went by meanwhile are counted, not made up for: a slow
// subscriber loses what lay between, and costs no memory.
//
// Owner: RpcSession. Thread: the door's.
class Subscriptions {
 public:
  // nullopt: kMaxSubscriptions are there. The first notification is due at once, after start_new().
  std::optional<SubscriptionId> add(Topic topic, std::chrono::milliseconds interval);
  bool remove(SubscriptionId id);
  // Those added since may be notified: their answer is on its way.
  void start_new();

  // When next() has something; SteadyTime::max() when nothing is subscribed to.
  SteadyTime due() const;
  struct Due {
    SubscriptionId id = 0;
    Topic topic = Topic::stats;
    std::uint64_t missed = 0;  // notifications left out since the last one
  };
  // The one that has waited longest; it is due again an interval later. nullopt: none is due.
  std::optional<Due> next(SteadyTime now);
  bool contains(SubscriptionId id) const;

 private:
  struct Subscription {
    SubscriptionId id;
    Topic topic;
    std::chrono::milliseconds interval;
    SteadyTime due = SteadyTime::min();  // min: at once
    bool started = false;
  };

  SubscriptionId last_id_ = 0;
  std::vector<Subscription> all_;
};

}  // namespace stoat::broker::admin
