#include "broker/outboxes.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace stoat::broker {

namespace {

// Idle batches kept, and the size from which one is not: what a rare burst took is given back.
constexpr std::size_t kSpareBatches = 64;
constexpr std::size_t kSpareDeliveries = 4096;

}  // namespace

Outbox& Outboxes::open(ConnectionId connection, WorkerIndex worker) {
  if (Outbox* known = find(connection)) return *known;
  auto& slot = all_[connection];
  slot = std::make_unique<Outbox>(*this, connection, worker, window_bytes_);
  last_id_ = connection;
  last_ = slot.get();
  return *slot;
}

Outbox* Outboxes::find(ConnectionId connection) {
  if (last_ != nullptr && last_id_ == connection) return last_;
  const auto found = all_.find(connection);
  if (found == all_.end()) return nullptr;
  last_id_ = connection;
  last_ = found->second.get();
  return last_;
}

void Outboxes::forget(ConnectionId connection) {
  Outbox* outbox = find(connection);
  if (outbox == nullptr) return;
  STOAT_ASSERT(!outbox->has_consumers(), connection);
  if (outbox->staged_ != nullptr) {
    forget_dirty(*outbox);
    give_back(std::move(outbox->staged_));
  }
  last_ = nullptr;
  all_.erase(connection);
}

std::unique_ptr<ToConnection> Outboxes::lend(Outbox& to) {
  dirty_.push_back(&to);
  if (spare_.empty()) return std::make_unique<ToConnection>();
  auto batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

void Outboxes::give_back(std::unique_ptr<ToConnection> batch) {
  if (spare_.size() >= kSpareBatches || batch->deliveries.capacity() > kSpareDeliveries) return;
  batch->clear();
  spare_.push_back(std::move(batch));
}

void Outboxes::forget_dirty(Outbox& outbox) {
  std::erase(dirty_, &outbox);
  std::replace(flushing_.begin(), flushing_.end(), &outbox, static_cast<Outbox*>(nullptr));
}

}  // namespace stoat::broker
