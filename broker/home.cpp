#include "broker/home.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "broker/home_impl.hpp"

namespace stoat::broker {

Home::Home(WorkerIndex, store::Store& store, const Clock&, Hooks hooks, HomeLimits limits)
    : impl_(std::make_unique<Impl>(store, std::move(hooks), limits)) {}

Home::~Home() = default;

// --- life of a queue ---

void Home::create_queue(QueueSpec spec, const store::RecoveredStream* recovered, bool /*clean*/) {
  auto queue = std::make_unique<Queue>(spec, impl_->context);
  // Clean or not: what lies at or below the ceiling may have been delivered. It is exact after a
  // clean stop, and ahead after any other.
  if (recovered != nullptr) queue->recover(*recovered);
  const bool added = impl_->queues.emplace(spec.id, std::move(queue)).second;
  STOAT_ASSERT(added, spec.id);
}

Home::Deleted Home::delete_queue(QueueId id, bool if_unused, bool if_empty,
                                 std::optional<ConnectionId> except_connection) {
  Queue* queue = impl_->find(id);
  if (queue == nullptr) return {DeleteResult::no_queue, 0};
  if (if_unused && queue->has_consumers()) return {DeleteResult::in_use, 0};
  if (if_empty && queue->ready_count() > 0) return {DeleteResult::not_empty, 0};
  const std::uint64_t messages = queue->remove(except_connection);
  impl_->last = nullptr;
  impl_->queues.erase(id);
  return {DeleteResult::ok, messages};
}

// --- methods ---

ConsumeResult Home::consume(QueueId id, ConsumerSpec spec) {
  Queue* queue = impl_->find(id);
  if (queue == nullptr) return ConsumeResult::no_queue;
  return queue->consume(spec, impl_->outboxes.open(spec.connection, spec.connection_worker));
}

bool Home::cancel(QueueId id, ConnectionId connection, ConsumerId id_on_connection) {
  Consumer* consumer = impl_->find_consumer(id, connection, id_on_connection);
  if (consumer == nullptr) return false;
  Outbox& outbox = *consumer->outbox;
  consumer->queue->cancel(*consumer);
  impl_->outboxes.flush_one(outbox, impl_->hooks.deliver);
  return true;
}

void Home::pause(QueueId queue, ConnectionId connection, ConsumerId id, bool paused) {
  Consumer* consumer = impl_->find_consumer(queue, connection, id);
  if (consumer != nullptr) consumer->queue->pause(*consumer, paused);
}

void Home::set_channel_limited(QueueId queue, ConnectionId connection, ConsumerId id,
                               bool limited) {
  Consumer* consumer = impl_->find_consumer(queue, connection, id);
  if (consumer != nullptr) consumer->queue->set_channel_limited(*consumer, limited);
}

void Home::get(QueueId id, std::function<void(Got)> done) {
  Queue* queue = impl_->find(id);
  std::optional<Got> got;
  if (queue != nullptr) {
    got = queue->get(done);
  } else {
    got.emplace().queue_gone = true;
  }
  if (got) done(std::move(*got));
}

std::optional<std::uint64_t> Home::purge(QueueId id) {
  Queue* queue = impl_->find(id);
  if (queue == nullptr) return std::nullopt;
  return queue->purge();
}

QueueCounts Home::counts(QueueId id) const {
  const Queue* queue = impl_->find(id);
  return queue != nullptr ? queue->counts() : QueueCounts{};
}

// --- the data path ---

void Home::take(ConnectionId connection, WorkerIndex connection_worker, ToHome& batch) {
  // A batch that only gives back may come after the connection's end; it makes no outbox anew.
  Outbox* outbox = batch.publishes.empty() ? impl_->outboxes.find(connection)
                                           : &impl_->outboxes.open(connection, connection_worker);
  if (outbox != nullptr && batch.written_bytes > 0) outbox->written(batch.written_bytes);
  for (const Settle& settle : batch.settles) {
    if (Queue* queue = impl_->find(settle.queue)) queue->settle(settle);
  }
  if (!batch.publishes.empty()) impl_->take_publishes(*outbox, batch.publishes);
  if (outbox != nullptr) {
    for (const Lease& lease : batch.leases) impl_->take_lease(*outbox, lease);
  }
  batch.clear();
}

void Home::end_turn() {
  // An answered get may lead to the next method, and that to another dispatch.
  while (!impl_->context.changed.empty() || !impl_->context.finished_gets.empty()) {
    impl_->dispatch_changed();
    impl_->finish_gets();
  }
  impl_->tell_unused();
  impl_->persister.submit_if_idle();
  impl_->outboxes.flush(impl_->hooks.deliver);
  impl_->finish_drains();
}

void Home::forget_connection(ConnectionId connection) {
  impl_->outboxes.forget(connection);
}

// --- transactions ---

Home::TxId Home::prepare(ConnectionId, TxWork work, store::Batch& batch) {
  Impl::Transaction transaction;
  bool put_waits = false;
  for (const Settle& settle : work.settles) {
    Queue* queue = impl_->find(settle.queue);
    if (queue == nullptr) continue;
    put_waits = queue->prepare_settle(settle, batch) || put_waits;
    transaction.settles.push_back(settle);
  }
  for (TxPublish& publish : work.publishes) {
    Queue* queue = impl_->find(publish.queue);
    if (queue == nullptr) continue;
    const Sequence sequence = queue->prepare_publish(publish.message, batch);
    transaction.publishes.push_back({publish.queue, sequence, std::move(publish.message)});
  }
  // What this batch builds on goes to the store before it: the puts of messages that it settles,
  // and the numbers that cover its sequences.
  if (put_waits || impl_->persister.has_numbers()) impl_->persister.submit_everything();
  const TxId id = ++impl_->last_transaction;
  impl_->transactions.emplace(id, std::move(transaction));
  return id;
}

void Home::release(TxId id) {
  const auto found = impl_->transactions.find(id);
  STOAT_ASSERT(found != impl_->transactions.end(), id);
  const Impl::Transaction transaction = std::move(found->second);
  impl_->transactions.erase(found);
  for (const auto& prepared : transaction.publishes) {
    if (Queue* queue = impl_->find(prepared.queue)) queue->release_publish(prepared.sequence);
  }
  for (const Settle& settle : transaction.settles) {
    if (Queue* queue = impl_->find(settle.queue)) queue->release_settle(settle);
  }
}

// --- stop ---

void Home::drain(std::function<void()> done) {
  impl_->drains.push_back(std::move(done));
  impl_->finish_drains();
}

std::vector<store::QueueNumbers> Home::exact_numbers() const {
  std::vector<store::QueueNumbers> all;
  for (const auto& [id, queue] : impl_->queues) {
    if (queue->durable()) all.push_back(queue->exact_numbers());
  }
  return all;
}

// --- figures ---

std::vector<QueueStats> Home::queue_stats(QueueId after, std::size_t limit) const {
  std::vector<const Queue*> found;
  for (const auto& [id, queue] : impl_->queues) {
    if (id > after) found.push_back(queue.get());
  }
  const auto by_id = [](const Queue* a, const Queue* b) { return a->id() < b->id(); };
  limit = std::min(limit, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(limit), found.end(),
                    by_id);
  std::vector<QueueStats> stats;
  stats.reserve(limit);
  for (std::size_t i = 0; i < limit; ++i) stats.push_back(found[i]->stats());
  return stats;
}

std::optional<QueueStats> Home::queue_stats(QueueId id) const {
  const Queue* queue = impl_->find(id);
  if (queue == nullptr) return std::nullopt;
  return queue->stats();
}

HomeStats Home::stats() const {
  HomeStats stats;
  stats.queues = impl_->queues.size();
  for (const auto& [id, queue] : impl_->queues) {
    const QueueCounts counts = queue->counts();
    stats.ready += counts.ready;
    stats.unacked += counts.unacked;
    stats.consumers += counts.consumers;
  }
  stats.published = impl_->context.published;
  stats.delivered = impl_->context.delivered;
  stats.acked = impl_->context.acked;
  stats.puts_written = impl_->persister.puts_written();
  stats.puts_elided = impl_->persister.puts_dropped();
  return stats;
}

}  // namespace stoat::broker
