#include "manual_store.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "store/read_collector.hpp"

namespace stoat::testing {

store::Recovered ManualStore::recover() {
  closed_ = false;
  store::Recovered found;
  found.clean = std::exchange(clean_, false);
  found.next_queue_id = QueueId(1);
  for (auto& [queue, stream] : current_.streams) {
    std::erase_if(stream.alive, [](const auto& m) { return m.second.transient; });
    std::uint64_t next = std::max<std::uint64_t>({1, stream.reserved_next, stream.ceiling + 1});
    if (!stream.put.empty()) next = std::max(next, *stream.put.rbegin() + 1);
    if (!stream.settled.empty()) next = std::max(next, *stream.settled.rbegin() + 1);
    std::uint64_t bytes = 0;
    for (const auto& [sequence, message] : stream.alive) bytes += message.bytes.size();
    const std::uint64_t first = stream.alive.empty() ? next : stream.alive.begin()->first;
    found.streams.push_back({{QueueId(queue), 0},
                             Sequence(first),
                             Sequence(next),
                             Sequence(stream.ceiling),
                             stream.alive.size(),
                             bytes});
    found.next_queue_id = QueueId(queue + 1);
  }
  synced_ = current_;
  return found;
}

void ManualStore::submit(store::Batch batch, Completion done) {
  STOAT_ASSERT(!closed_);
  ++stats_.groups;
  if (batch.sync) ++stats_.syncs;
  stats_.puts += batch.puts.size();
  waiting_.push_back({std::move(batch), {}, {}, std::move(done)});
}

void ManualStore::save_topology(store::TopologyChange change, Completion done) {
  STOAT_ASSERT(!closed_);
  store::Batch batch;
  batch.sync = true;
  waiting_.push_back({std::move(batch), {}, std::move(change.deleted_queues), std::move(done)});
}

void ManualStore::read(store::StreamId stream, Sequence from, store::ReadLimit limit,
                       ReadCompletion done) {
  STOAT_ASSERT(!closed_ && from < limit.end, from, limit.end);
  reads_.push_back({stream, from, limit, std::move(done)});
}

void ManualStore::close(std::span<const store::QueueNumbers> exact_numbers) {
  STOAT_ASSERT(waiting_.empty() && reads_.empty());
  for (const store::QueueNumbers& numbers : exact_numbers) {
    Stream& stream = current_.streams[numbers.stream.queue.value];
    stream.reserved_next = numbers.reserved_next.value;
    stream.ceiling = numbers.delivered_ceiling.value;
  }
  unsynced_.clear();
  synced_ = current_;
  clean_ = closed_ = true;
}

void ManualStore::complete_batch() {
  STOAT_ASSERT(!waiting_.empty());
  Entry entry = std::move(waiting_.front());
  waiting_.pop_front();
  keep_bytes(entry);
  current_.apply(entry);
  const Completion done = std::move(entry.done);
  const bool sync = entry.batch.sync;
  unsynced_.push_back(std::move(entry));
  while (sync && !unsynced_.empty()) {
    synced_.apply(unsynced_.front());
    unsynced_.pop_front();
  }
  if (done) done(std::nullopt);
}

void ManualStore::fail_batch() {
  STOAT_ASSERT(!waiting_.empty());
  const Completion done = std::move(waiting_.front().done);
  waiting_.pop_front();
  done(store::StoreError{"no space"});
}

void ManualStore::complete_read(std::size_t index) {
  STOAT_ASSERT(index < reads_.size(), index, reads_.size());
  const Read read = std::move(reads_[index]);
  reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(index));
  if (reads_fail) {
    store::ReadResult failed;
    failed.resume_from = read.from;
    failed.error = store::StoreError{"a bad block"};
    return read.done(std::move(failed));
  }
  store::ReadCollector collector(read.from, read.limit);
  const Stream& found = current_.streams[read.stream.queue.value];
  for (auto at = found.alive.lower_bound(read.from.value); at != found.alive.end(); ++at) {
    if (!collector.add(Sequence(at->first), at->second.bytes, at->second.transient)) break;
  }
  read.done(collector.finish());
}

void ManualStore::crash(std::size_t kept) {
  STOAT_ASSERT(kept <= unsynced(), kept, unsynced());
  for (Entry& entry : waiting_) {
    keep_bytes(entry);
    unsynced_.push_back(std::move(entry));
  }
  for (std::size_t i = 0; i < kept; ++i) synced_.apply(unsynced_[i]);
  current_ = synced_;
  unsynced_.clear();
  waiting_.clear();
  reads_.clear();
}

bool ManualStore::survives(QueueId queue, Sequence sequence) const {
  const auto found = synced_.streams.find(queue.value);
  if (found == synced_.streams.end()) return false;
  const auto message = found->second.alive.find(sequence.value);
  return message != found->second.alive.end() && !message->second.transient;
}

void ManualStore::keep_bytes(Entry& entry) {
  for (const store::Put& put : entry.batch.puts) entry.bytes.emplace_back(put.bytes);
}

void ManualStore::State::apply(const Entry& entry) {
  for (const store::QueueNumbers& numbers : entry.batch.numbers) {
    if (deleted.contains(numbers.stream.queue.value)) continue;
    Stream& stream = streams[numbers.stream.queue.value];
    STOAT_ASSERT(numbers.reserved_next.value >= stream.reserved_next, numbers.stream.queue);
    STOAT_ASSERT(numbers.delivered_ceiling.value >= stream.ceiling, numbers.stream.queue);
    stream.reserved_next = numbers.reserved_next.value;
    stream.ceiling = numbers.delivered_ceiling.value;
  }
  for (std::size_t i = 0; i < entry.batch.puts.size(); ++i) {
    const store::Put& put = entry.batch.puts[i];
    if (deleted.contains(put.stream.queue.value)) continue;
    Stream& stream = streams[put.stream.queue.value];
    const std::uint64_t at = put.sequence.value;
    STOAT_ASSERT(!stream.settled.contains(at), put.stream.queue, at);
    STOAT_ASSERT(stream.put.insert(at).second, put.stream.queue, at);
    STOAT_ASSERT(put.transient || at < stream.reserved_next, put.stream.queue, at);
    stream.alive[at] = {entry.bytes[i], put.transient};
  }
  apply_settles(entry.batch);
  for (const QueueId queue : entry.deleted_queues) {
    deleted.insert(queue.value);
    streams.erase(queue.value);
  }
}

// What a batch says it ends must be what it ends; a purge names the sum with its first range.
void ManualStore::State::apply_settles(const store::Batch& batch) {
  struct Sum {
    std::uint64_t said = 0, said_bytes = 0, ended = 0, ended_bytes = 0;
  };
  std::map<std::uint64_t, Sum> sums;
  for (const store::Settle& settle : batch.settles) {
    const std::uint64_t queue = settle.stream.queue.value;
    if (deleted.contains(queue)) continue;
    STOAT_ASSERT(settle.first <= settle.last && settle.first.value > 0, queue, settle.first);
    Stream& stream = streams[queue];
    Sum& sum = sums[queue];
    sum.said += settle.count;
    sum.said_bytes += settle.bytes;
    for (std::uint64_t at = settle.first.value; at <= settle.last.value; ++at) {
      stream.settled.insert(at);
      const auto found = stream.alive.find(at);
      if (found == stream.alive.end()) continue;
      if (!found->second.transient) {
        ++sum.ended;
        sum.ended_bytes += found->second.bytes.size();
      }
      stream.alive.erase(found);
    }
  }
  for (const auto& [queue, sum] : sums) {
    STOAT_ASSERT(sum.said == sum.ended, queue, sum.said, sum.ended);
    STOAT_ASSERT(sum.said_bytes == sum.ended_bytes, queue, sum.said_bytes, sum.ended_bytes);
  }
}

}  // namespace stoat::testing
