#include "broker/admin/subscriptions.hpp"

#include <algorithm>

#include "broker/admin/limits.hpp"

namespace stoat::broker::admin {

std::optional<SubscriptionId> Subscriptions::add(Topic topic, std::chrono::milliseconds interval) {
  if (all_.size() >= kMaxSubscriptions) return std::nullopt;
  all_.push_back({++last_id_, topic, interval});
  return last_id_;
}

bool Subscriptions::remove(SubscriptionId id) {
  return std::erase_if(all_, [id](const Subscription& one) { return one.id == id; }) > 0;
}

void Subscriptions::start_new() {
  for (Subscription& one : all_) one.started = true;
}

SteadyTime Subscriptions::due() const {
  SteadyTime due = SteadyTime::max();
  for (const Subscription& one : all_) {
    if (one.started) due = std::min(due, one.due);
  }
  return due;
}

std::optional<Subscriptions::Due> Subscriptions::next(SteadyTime now) {
  Subscription* first = nullptr;
  for (Subscription& one : all_) {
    if (!one.started || one.due > now) continue;
    if (first == nullptr || one.due < first->due) first = &one;
  }
  if (first == nullptr) return std::nullopt;
  Due due{first->id, first->topic, 0};
  if (first->due == SteadyTime::min()) {
    first->due = now + first->interval;
    return due;
  }
  const auto late = (now - first->due) / first->interval;
  due.missed = static_cast<std::uint64_t>(late);
  first->due += (late + 1) * first->interval;
  return due;
}

bool Subscriptions::contains(SubscriptionId id) const {
  return std::any_of(all_.begin(), all_.end(),
                     [id](const Subscription& one) { return one.id == id; });
}

}  // namespace stoat::broker::admin
