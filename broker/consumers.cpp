#include "broker/consumers.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace stoat::broker {

Consumer& Consumers::add(const ConsumerSpec& spec, Queue& queue, Outbox& outbox) {
  auto& consumer = *present_.emplace_back(std::make_unique<Consumer>());
  consumer.queue = &queue;
  consumer.outbox = &outbox;
  consumer.channel = spec.channel;
  consumer.id = spec.id;
  consumer.priority = spec.priority;
  consumer.prefetch = spec.prefetch;
  consumer.no_ack = spec.no_ack;
  consumer.exclusive = spec.exclusive;
  consumer.channel_limited = spec.channel_limited;
  consumer.paused = spec.paused;
  ++levels_[spec.priority].consumers;
  outbox.add_consumer(consumer);
  list(consumer);
  if (single_active_ && active_ == nullptr) active_ = &consumer;
  return consumer;
}

void Consumers::remove(Consumer& consumer) {
  return_lease(consumer);
  std::erase(leased_, &consumer);
  const auto level = levels_.find(consumer.priority);
  if (consumer.listed) unlist(level->second, consumer);
  if (--level->second.consumers == 0) levels_.erase(level);
  std::exchange(consumer.outbox, nullptr)->remove_consumer(consumer);

  const auto at = std::find_if(present_.begin(), present_.end(),
                               [&](const auto& present) { return present.get() == &consumer; });
  STOAT_ASSERT(at != present_.end(), queue_, consumer.id);
  auto owned = std::move(*at);
  present_.erase(at);
  if (active_ == owned.get()) choose_active();
  if (owned->unacked > 0) left_.push_back(std::move(owned));
}

// The highest priority, among equals the oldest.
void Consumers::choose_active() {
  active_ = nullptr;
  for (const auto& consumer : present_) {
    if (active_ == nullptr || consumer->priority > active_->priority) active_ = consumer.get();
  }
  if (active_ != nullptr) list(*active_);
}

void Consumers::list(Consumer& consumer) {
  if (consumer.listed || consumer.outbox == nullptr) return;
  Level& level = levels_.find(consumer.priority)->second;
  consumer.listed = true;
  consumer.previous = level.last;
  consumer.next = nullptr;
  (level.last != nullptr ? level.last->next : level.first) = &consumer;
  level.last = &consumer;
}

void Consumers::unlist(Level& level, Consumer& consumer) {
  (consumer.previous != nullptr ? consumer.previous->next : level.first) = consumer.next;
  (consumer.next != nullptr ? consumer.next->previous : level.last) = consumer.previous;
  consumer.previous = consumer.next = nullptr;
  consumer.listed = false;
}

// For a message at hand. What it lacks comes back to reconsider(): a settle, an unpause, written
// bytes, a lease, or the active consumer's leaving.
bool Consumers::has_credit(Consumer& consumer) {
  if (single_active_ && &consumer != active_) return false;
  if (consumer.paused) return false;
  if (!consumer.no_ack && consumer.prefetch > 0 && consumer.unacked >= consumer.prefetch) {
    return false;
  }
  if (!consumer.outbox->has_room()) {
    if (!std::exchange(consumer.waits_for_room, true)) consumer.outbox->wait_for_room(consumer);
    return false;
  }
  if (consumer.channel_limited && !consumer.no_ack && consumer.lease == 0) {
    if (!std::exchange(consumer.lease_wanted, true)) {
      consumer.outbox->want_lease(consumer.channel, consumer.id, queue_);
    }
    return false;
  }
  return true;
}

Consumer* Consumers::next() {
  for (auto& [priority, level] : levels_) {
    while (level.first != nullptr) {
      if (has_credit(*level.first)) return level.first;
      unlist(level, *level.first);
    }
  }
  return nullptr;
}

Consumer* Consumers::find_able(ConnectionId connection, ConsumerId id) {
  for (const auto& consumer : present_) {
    if (consumer->id != id || consumer->outbox->connection() != connection) continue;
    return has_credit(*consumer) ? consumer.get() : nullptr;
  }
  return nullptr;
}

void Consumers::delivered(Consumer& consumer) {
  ++consumer.unacked;
  if (consumer.lease > 0) --consumer.lease;
  if (consumer.next == nullptr) return;
  Level& level = levels_.find(consumer.priority)->second;
  unlist(level, consumer);
  list(consumer);
}

void Consumers::settled(Consumer& consumer) {
  STOAT_ASSERT(consumer.unacked > 0, queue_, consumer.id);
  --consumer.unacked;
  if (consumer.outbox != nullptr) {
    list(consumer);
    return;
  }
  if (consumer.unacked > 0) return;
  std::erase_if(left_, [&](const auto& left) { return left.get() == &consumer; });
}

void Consumers::reconsider(Consumer& consumer) {
  list(consumer);
}

void Consumers::add_lease(Consumer& consumer, std::uint32_t count) {
  consumer.lease_wanted = false;
  consumer.lease += count;
  leased_.push_back(&consumer);
  if (!consumer.channel_limited) return_lease(consumer);
  list(consumer);
}

void Consumers::set_channel_limited(Consumer& consumer, bool limited) {
  consumer.channel_limited = limited;
  consumer.lease_wanted = false;  // the channel counts anew
  if (!limited) return_lease(consumer);
  list(consumer);
}

void Consumers::return_lease(Consumer& consumer) {
  const std::uint32_t unused = std::exchange(consumer.lease, 0);
  if (unused > 0) consumer.outbox->return_lease(consumer.channel, consumer.id, unused);
}

void Consumers::return_leases() {
  for (Consumer* consumer : leased_) {
    return_lease(*consumer);
    list(*consumer);
  }
  leased_.clear();
}

}  // namespace stoat::broker
