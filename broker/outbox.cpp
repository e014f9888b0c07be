#include "broker/outbox.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "broker/consumer.hpp"
#include "broker/outboxes.hpp"
#include "broker/queue.hpp"

namespace stoat::broker {

namespace {

constexpr std::size_t kMaxLeftWanting = 1024;

}  // namespace

ToConnection& Outbox::staged() {
  if (staged_ == nullptr) staged_ = all_.lend(*this);
  return *staged_;
}

void Outbox::deliver(Delivery delivery, std::uint64_t bytes) {
  unwritten_bytes_ += bytes;
  staged().deliveries.push_back(std::move(delivery));
}

void Outbox::written(std::uint64_t bytes) {
  STOAT_ASSERT(bytes <= unwritten_bytes_, bytes, unwritten_bytes_);
  unwritten_bytes_ -= bytes;
  if (waiting_.empty() || !has_room()) return;
  for (Consumer* consumer : waiting_) {
    consumer->waits_for_room = false;
    consumer->queue->reconsider(*consumer);
  }
  waiting_.clear();
}

void Outbox::confirm(ChannelRef channel, PublishTag tag) {
  auto& confirms = staged().confirms;
  if (!confirms.empty()) {
    Confirm& last = confirms.back();
    if (last.channel == channel && last.last.next() == tag) {
      last.last = tag;
      return;
    }
  }
  confirms.push_back({channel, tag, tag, false});
}

void Outbox::consumer_cancelled(ChannelRef channel, ConsumerId consumer) {
  staged().cancelled.push_back({channel, consumer});
}

void Outbox::want_lease(ChannelRef channel, ConsumerId consumer, QueueId queue) {
  staged().wanted.push_back({channel, consumer, queue});
}

void Outbox::return_lease(ChannelRef channel, ConsumerId consumer, std::uint32_t count) {
  staged().returned.push_back({channel, consumer, count});
}

void Outbox::add_consumer(Consumer& consumer) {
  const bool added = consumers_.emplace(consumer.id, &consumer).second;
  STOAT_ASSERT(added, connection_, consumer.id);
}

void Outbox::remove_consumer(Consumer& consumer) {
  consumers_.erase(consumer.id);
  if (consumer.waits_for_room) {
    std::erase(waiting_, &consumer);
    consumer.waits_for_room = false;
  }
  if (!consumer.lease_wanted) return;
  if (left_wanting_.size() == kMaxLeftWanting) left_wanting_.pop_front();
  left_wanting_.push_back({consumer.id, consumer.channel});
}

Consumer* Outbox::find_consumer(ConsumerId id) {
  const auto found = consumers_.find(id);
  return found == consumers_.end() ? nullptr : found->second;
}

void Outbox::return_stray_lease(ConsumerId consumer, std::uint32_t count) {
  for (std::size_t i = 0; i < left_wanting_.size(); ++i) {
    LeftWanting& left = left_wanting_[i];
    if (left.consumer != consumer) continue;
    return_lease(left.channel, consumer, count);
    left.consumer = {};
    return;
  }
}

}  // namespace stoat::broker
