#include "client/consumers.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace stoat::client {

Consumers::Consumer* Consumers::find(ConsumerId id) {
  const auto it = consumers_.find(id);
  return it == consumers_.end() ? nullptr : it->second.get();
}

std::string Consumers::unused_tag() const {
  std::uint64_t number = last_id_.value;
  std::string tag;
  do {
    tag = "consumer-" + std::to_string(++number);
  } while (active(tag));
  return tag;
}

std::optional<ConsumerId> Consumers::add(const std::string& tag, bool no_ack) {
  const auto [it, added] = active_by_tag_.try_emplace(tag, last_id_.next());
  if (!added) return std::nullopt;
  last_id_ = it->second;
  consumers_.emplace(last_id_, std::make_unique<Consumer>(context_, tag, no_ack));
  return last_id_;
}

std::optional<ConsumerId> Consumers::active(std::string_view tag) const {
  const auto it = active_by_tag_.find(tag);
  if (it == active_by_tag_.end()) return std::nullopt;
  return it->second;
}

bool Consumers::is_active(ConsumerId id) const {
  const auto it = consumers_.find(id);
  return it != consumers_.end() && it->second->active;
}

const std::string& Consumers::tag(ConsumerId id) const {
  return consumers_.at(id)->tag;
}

Consumers::Taken Consumers::deliver(ConsumerId id, Delivery delivery) {
  Consumer* consumer = find(id);
  STOAT_ASSERT(consumer != nullptr, id);
  if (!consumer->held) return consumer->no_ack ? Taken::settled : Taken::give_back;
  consumer->buffer.push(std::move(delivery));
  return Taken::by_program;
}

void Consumers::next(ConsumerId id, SteadyTime deadline, DeliveryBuffer::Next done) {
  if (Consumer* consumer = find(id)) return consumer->buffer.next(deadline, std::move(done));
  done(Error(ErrorKind::closed, "the consumer is gone"));
}

void Consumers::deactivate(ConsumerId id, Consumer& consumer) {
  if (std::exchange(consumer.active, false)) active_by_tag_.erase(consumer.tag);
  if (!consumer.held) consumers_.erase(id);
}

void Consumers::stop(ConsumerId id) {
  Consumer* consumer = find(id);
  if (consumer == nullptr) return;
  consumer->buffer.end();
  deactivate(id, *consumer);
}

void Consumers::fail(ConsumerId id, const Error& reason) {
  Consumer* consumer = find(id);
  if (consumer == nullptr) return;
  consumer->buffer.fail(reason);
  deactivate(id, *consumer);
}

std::vector<std::uint64_t> Consumers::release(ConsumerId id) {
  Consumer* consumer = find(id);
  if (consumer == nullptr) return {};
  std::vector<std::uint64_t> tags = consumer->buffer.release();
  if (consumer->no_ack) tags.clear();
  consumer->held = false;
  if (!consumer->active) consumers_.erase(id);
  return tags;
}

void Consumers::stop_all() {
  for (const auto& [tag, id] : std::map(active_by_tag_)) stop(id);
}

void Consumers::fail_all(const Error& reason) {
  for (const auto& [tag, id] : std::map(active_by_tag_)) fail(id, reason);
}

SteadyTime Consumers::expire(SteadyTime now) {
  SteadyTime earliest = SteadyTime::max();
  for (const auto& [id, consumer] : consumers_)
    earliest = std::min(earliest, consumer->buffer.expire(now));
  return earliest;
}

}  // namespace stoat::client
