#include "client/delivery_buffer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace stoat::client {

namespace {
std::size_t size_of(const Delivery& delivery) {
  return sizeof delivery + delivery.body.size() + delivery.raw_properties.size() +
         delivery.exchange.size() + delivery.routing_key.size();
}
}  // namespace

DeliveryBuffer::~DeliveryBuffer() {
  release();
}

void DeliveryBuffer::push(Delivery delivery) {
  STOAT_ASSERT(!ended_);
  if (!waiters_.empty()) {
    Waiter waiter = std::move(waiters_.front());
    waiters_.pop_front();
    waiter.done(std::move(delivery));
    return;
  }
  context_.buffered_bytes += size_of(delivery);
  deliveries_.push_back(std::move(delivery));
}

Delivery DeliveryBuffer::pop() {
  Delivery delivery = std::move(deliveries_.front());
  deliveries_.pop_front();
  context_.buffered_bytes -= size_of(delivery);
  return delivery;
}

void DeliveryBuffer::next(SteadyTime deadline, Next done) {
  if (!deliveries_.empty())
    done(pop());
  else if (ended_)
    done(ended_answer());
  else if (waiters_.size() >= kMaxWaiters)
    done(Error(ErrorKind::limit_reached, "too many wait for the next delivery"));
  else
    waiters_.push_back({deadline, std::move(done)});
}

Result<std::optional<Delivery>> DeliveryBuffer::ended_answer() const {
  if (error_) return *error_;
  return std::optional<Delivery>();
}

void DeliveryBuffer::answer_all_waiters() {
  for (Waiter& waiter : std::exchange(waiters_, {})) waiter.done(ended_answer());
}

void DeliveryBuffer::end() {
  if (std::exchange(ended_, true)) return;
  answer_all_waiters();
}

void DeliveryBuffer::fail(const Error& error) {
  if (std::exchange(ended_, true)) return;
  error_ = error;
  answer_all_waiters();
}

std::vector<std::uint64_t> DeliveryBuffer::release() {
  std::vector<std::uint64_t> tags;
  while (!deliveries_.empty()) tags.push_back(pop().delivery_tag);
  return tags;
}

SteadyTime DeliveryBuffer::expire(SteadyTime now) {
  SteadyTime earliest = SteadyTime::max();
  std::deque<Waiter> waiting;
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (waiter.deadline <= now) {
      waiter.done(std::optional<Delivery>());
    } else {
      earliest = std::min(earliest, waiter.deadline);
      waiting.push_back(std::move(waiter));
    }
  }
  waiters_ = std::move(waiting);
  return earliest;
}

}  // namespace stoat::client
