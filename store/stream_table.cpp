#include "store/stream_table.hpp"

#include "base/assert.hpp"

namespace stoat::store {
namespace {

// How far a run of unsettled positions is looked ahead; a longer one is answered in parts.
constexpr std::uint64_t kLongestRun = 1 << 20;

SettledRun run_at(const SettledSet& set, Sequence position) {
  const Sequence unsettled = set.next_unsettled(position);
  if (unsettled > position) return {true, unsettled};
  return {false, set.next_settled(position, Sequence{position.value + kLongestRun})};
}

}  // namespace

void StreamState::settle(Sequence first, Sequence last) {
  std::lock_guard lock(mutex_);
  live_.insert(first, last);
}

void StreamState::publish(Sequence first, Sequence last) {
  std::lock_guard lock(mutex_);
  synced_.insert(first, last);
}

bool StreamState::is_settled(Sequence position) const {
  std::lock_guard lock(mutex_);
  return live_.contains(position);
}

SettledRun StreamState::live_run_at(Sequence position) const {
  std::lock_guard lock(mutex_);
  return run_at(live_, position);
}

SettledRun StreamState::synced_run_at(Sequence position) const {
  std::lock_guard lock(mutex_);
  return run_at(synced_, position);
}

Sequence StreamState::synced_watermark() const {
  std::lock_guard lock(mutex_);
  return synced_.watermark();
}

SettledSet::Changes StreamState::take_changes() {
  std::lock_guard lock(mutex_);
  return live_.take_changes();
}

void StreamState::restore_watermark(Sequence watermark) {
  live_.restore_watermark(watermark);
  synced_.restore_watermark(watermark);
}

bool StreamState::restore_chunk(std::uint64_t index, std::string_view encoded) {
  return live_.restore_chunk(index, encoded) && synced_.restore_chunk(index, encoded);
}

StreamTable::Found StreamTable::find(StreamId id) const {
  std::shared_lock lock(mutex_);
  auto queue = queues_.find(id.queue);
  if (queue == queues_.end()) return {};
  if (queue->second.deleted) return {Fate::deleted, nullptr};
  for (const auto& stream : queue->second.streams) {
    if (stream->id == id) return {Fate::alive, stream};
  }
  return {Fate::alive, nullptr};
}

std::vector<std::shared_ptr<StreamState>> StreamTable::streams_of(QueueId queue) const {
  std::shared_lock lock(mutex_);
  auto found = queues_.find(queue);
  if (found == queues_.end()) return {};
  return found->second.streams;
}

std::vector<std::shared_ptr<StreamState>> StreamTable::all() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<StreamState>> streams;
  for (const auto& [id, queue] : queues_) {
    streams.insert(streams.end(), queue.streams.begin(), queue.streams.end());
  }
  return streams;
}

bool StreamTable::knows(QueueId queue) const {
  std::shared_lock lock(mutex_);
  return queues_.contains(queue);
}

void StreamTable::add_queue(QueueId queue) {
  std::unique_lock lock(mutex_);
  const bool added = queues_.try_emplace(queue).second;
  STOAT_ASSERT(added, queue);
}

std::shared_ptr<StreamState> StreamTable::add_stream(StreamId id, Sequence recovered_next) {
  auto stream = std::make_shared<StreamState>(id, recovered_next);
  std::unique_lock lock(mutex_);
  auto queue = queues_.find(id.queue);
  STOAT_ASSERT(queue != queues_.end() && !queue->second.deleted, id.queue);
  queue->second.streams.push_back(stream);
  return stream;
}

void StreamTable::mark_deleted(QueueId queue) {
  std::unique_lock lock(mutex_);
  Queue& deleted = queues_[queue];
  deleted.deleted = true;
  deleted.streams.clear();
}

void StreamTable::forget(QueueId queue) {
  std::unique_lock lock(mutex_);
  queues_.erase(queue);
}

}  // namespace stoat::store
