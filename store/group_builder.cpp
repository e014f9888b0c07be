#include "store/group_builder.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace stoat::store {
namespace {

constexpr std::size_t kKeptBatchBytes = 64u << 10;

rocksdb::Slice slice(std::string_view view) {
  return {view.data(), view.size()};
}

template <std::size_t N>
rocksdb::Slice slice(const Key<N>& key) {
  return slice(key.view());
}

std::uint64_t random_epoch() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

GroupBuilder::GroupBuilder(const Database& database, StreamTable& streams,
                           const RecoveryResult& recovered)
    : database_(database),
      streams_(streams),
      next_body_id_(recovered.next_body_id),
      next_queue_id_(recovered.recovered.next_queue_id),
      alive_bytes_(recovered.alive_bytes) {
  mark_.epoch = random_epoch();
}

void GroupBuilder::build(std::span<const Submission> group) {
  begin();
  // All that settles or deletes first: what it makes dead is not written at all.
  for (const Submission& submission : group) {
    std::visit([this](const auto& what) { apply(what); }, submission.what);
  }
  for (const Submission& submission : group) {
    const auto* batch = std::get_if<Batch>(&submission.what);
    if (!batch) continue;
    const bool keeps = encode_puts(*batch);
    // What only puts messages that are dead by now has nothing left to promise.
    const bool only_puts = batch->settles.empty() && batch->numbers.empty() && !batch->puts.empty();
    if (batch->sync && (keeps || !only_puts)) sync_ = true;
  }
  encode_large();
  encode_records();
  if (next_queue_id_changed_) {
    durable_.Put(database_.meta(), slice(kNextQueueIdKey), std::to_string(next_queue_id_.value));
    next_queue_id_changed_ = false;
  }
  if (unsynced_.sync_due()) sync_ = true;
  if (durable_.Count() == 0) --mark_.group;  // not written: no later mark may miss it
}

void GroupBuilder::begin() {
  durable_.Clear();
  transient_.Clear();
  sync_ = false;
  puts_ = 0;
  put_bytes_ = 0;
  ++mark_.group;
  const auto mark = encode_mark(mark_);
  durable_.PutLogData({mark.data(), mark.size()});
}

void GroupBuilder::apply(const TopologyChange& change) {
  sync_ = true;
  for (const auto& [key, json] : change.puts) durable_.Put(database_.topology(), key, json);
  for (const auto& key : change.erases) durable_.Delete(database_.topology(), key);
  for (QueueId queue : change.created_queues) create_queue(queue);
  for (QueueId queue : change.deleted_queues) delete_queue(queue);
}

void GroupBuilder::apply(const ForgetQueues& forget) {
  for (QueueId queue : forget.queues) durable_.Delete(database_.queues(), slice(queue_key(queue)));
}

void GroupBuilder::apply(const ExactNumbers& exact) {
  sync_ = true;
  for (const QueueNumbers& numbers : exact.numbers) {
    StreamState* state = stream(numbers.stream);
    if (!state || !state->persistent) continue;
    state->record.reserved_next = numbers.reserved_next;
    state->record.delivered_ceiling = numbers.delivered_ceiling;
    touch(*state);
  }
}

void GroupBuilder::apply(const SetClean& set) {
  sync_ = true;
  durable_.Put(database_.meta(), slice(kFormatKey), std::to_string(kFormatVersion));
  if (set.clean) {
    durable_.Put(database_.meta(), slice(kCleanKey), slice(kCleanValue));
  } else {
    durable_.Delete(database_.meta(), slice(kCleanKey));
  }
}

void GroupBuilder::apply_settles(const Batch& batch) {
  for (const Settle& settle : batch.settles) {
    STOAT_ASSERT(settle.first <= settle.last, settle.first, settle.last);
    StreamState* state = stream(settle.stream);
    if (!state) continue;
    state->settle(settle.first, settle.last);
    // Below zero for a moment when the put comes later in this group; checked with the record.
    state->record.count -= settle.count;
    state->record.bytes -= settle.bytes;
    alive_bytes_ -= settle.bytes;
    if (settle.count > 0) make_persistent(*state);
    unsynced_.add(last_stream_, settle);
    touch(*state);
  }
  for (const QueueNumbers& numbers : batch.numbers) apply_numbers(numbers);
}

void GroupBuilder::apply_numbers(const QueueNumbers& numbers) {
  StreamState* state = stream(numbers.stream);
  if (!state) return;
  make_persistent(*state);
  StreamRecord& record = state->record;
  record.reserved_next = std::max(record.reserved_next, numbers.reserved_next);
  record.delivered_ceiling = std::max(record.delivered_ceiling, numbers.delivered_ceiling);
  touch(*state);
}

void GroupBuilder::create_queue(QueueId queue) {
  if (StreamState* state = stream({queue, 0})) make_persistent(*state);
}

void GroupBuilder::delete_queue(QueueId queue) {
  if (deleted_queues_.contains(Sequence{queue.value})) return;
  deleted_queues_.insert(Sequence{queue.value}, Sequence{queue.value});
  if (last_stream_ && last_stream_->id.queue == queue) last_stream_.reset();
  bool persistent = false;
  std::uint64_t bytes = 0;
  for (const auto& state : streams_.streams_of(queue)) {
    state->deleted = true;
    if (!state->persistent) continue;
    persistent = true;
    bytes += state->record.bytes;
    durable_.Delete(database_.queues(), slice(record_key(state->id)));
    for (std::uint64_t chunk : state->live().persisted_chunks()) {
      durable_.Delete(database_.queues(), slice(chunk_key(state->id, chunk)));
    }
  }
  if (persistent) durable_.Put(database_.queues(), slice(queue_key(queue)), {&kQueueDeleted, 1});
  alive_bytes_ -= bytes;
  unsynced_.add_deleted(queue, bytes);
}

bool GroupBuilder::encode_puts(const Batch& batch) {
  bool keeps = false;
  for (const Put& put : batch.puts) {
    STOAT_ASSERT(put.sequence.value > 0, put.stream.queue);
    StreamState* state = stream(put.stream);
    if (!state) continue;
    if (!put.transient) {
      make_persistent(*state);
      state->record.count += 1;
      state->record.bytes += put.bytes.size();
      alive_bytes_ += put.bytes.size();
      touch(*state);
    }
    if (state->live().contains(put.sequence)) continue;
    const MessageKey key = message_key(put.stream, put.sequence);
    if (put.transient) {
      transient_.Put(database_.transient(), slice(key), slice(put.bytes));
      if (put.sequence.value > state->last_transient) state->last_transient = put.sequence.value;
    } else {
      keeps = true;
      if (put.bytes.size() > kMaxUnsharedBytes) {
        large_.push_back(put);
        continue;
      }
      durable_.Put(database_.messages(), slice(key), slice(put.bytes));
    }
    ++puts_;
    put_bytes_ += put.bytes.size();
  }
  return keeps;
}

void GroupBuilder::encode_large() {
  const auto address = [](const Put& put) { return put.bytes.data(); };
  std::stable_sort(large_.begin(), large_.end(), [&](const Put& a, const Put& b) {
    return std::less<>()(address(a), address(b));
  });
  for (std::span<const Put> rest = large_; !rest.empty();) {
    std::size_t same = 1;
    while (same < rest.size() && address(rest[same]) == address(rest[0])) ++same;
    if (same > 1) {
      encode_body(rest.first(same));
    } else {
      const MessageKey key = message_key(rest[0].stream, rest[0].sequence);
      durable_.Put(database_.messages(), slice(key), slice(rest[0].bytes));
    }
    puts_ += same;
    put_bytes_ += rest[0].bytes.size();
    rest = rest.subspan(same);
  }
  large_.clear();
}

void GroupBuilder::encode_body(std::span<const Put> users) {
  users_.clear();
  for (const Put& put : users) users_.push_back({put.stream, put.sequence});
  users_bytes_.clear();
  encode_users(users_, &users_bytes_);

  const std::string_view bytes = users[0].bytes;
  const BodyId body = std::exchange(next_body_id_, next_body_id_.next());
  const BodyKey key = body_key(body);
  const rocksdb::Slice key_part = slice(key);
  const std::array<rocksdb::Slice, 2> value_parts = {rocksdb::Slice(users_bytes_), slice(bytes)};
  durable_.Put(database_.bodies(), rocksdb::SliceParts(&key_part, 1),
               rocksdb::SliceParts(value_parts.data(), static_cast<int>(value_parts.size())));
  const auto reference = encode_reference({body, bytes.size()});
  for (const BodyUser& user : users_) {
    durable_.Put(database_.messages(), slice(reference_key(user.stream, user.sequence)),
                 {reference.data(), reference.size()});
  }
}

void GroupBuilder::encode_records() {
  for (const Stream& state : touched_) {
    state->record_changed = false;
    if (state->persistent && !state->deleted) encode_stream(*state);
  }
  touched_.clear();
}

void GroupBuilder::encode_stream(StreamState& state) {
  // What was put here and what was settled by whom have to agree.
  const StreamRecord& held = state.record;
  STOAT_ASSERT(held.count <= std::numeric_limits<std::int64_t>::max(), state.id.queue, held.count);
  STOAT_ASSERT(held.bytes <= std::numeric_limits<std::int64_t>::max(), state.id.queue, held.bytes);
  STOAT_ASSERT(held.count > 0 || held.bytes == 0, state.id.queue, held.bytes);

  StreamRecord record = held;
  record.watermark = state.live().watermark();
  const auto encoded = encode_record(record);
  durable_.Put(database_.queues(), slice(record_key(state.id)), {encoded.data(), encoded.size()});
  if (!state.live().has_changes()) return;
  const auto changes = state.take_changes();
  for (std::uint64_t index : changes.put) {
    durable_.Put(database_.queues(), slice(chunk_key(state.id, index)),
                 state.live().encode_chunk(index));
  }
  for (std::uint64_t index : changes.erase) {
    durable_.Delete(database_.queues(), slice(chunk_key(state.id, index)));
  }
}

UnsyncedMarks::Published GroupBuilder::written(std::uint64_t log_number) {
  // RocksDB begins a new file when it will, also between this write and the question for its
  // number.
  mark_.previous_log = log_number == log_number_ ? log_number : 0;
  log_number_ = log_number;
  if (!sync_) return {};
  mark_.synced_group = mark_.group;
  return unsynced_.publish(streams_);
}

void GroupBuilder::release_memory() {
  if (durable_.Data().capacity() > kKeptBatchBytes) durable_ = rocksdb::WriteBatch();
  if (transient_.Data().capacity() > kKeptBatchBytes) transient_ = rocksdb::WriteBatch();
  last_stream_.reset();
}

StreamState* GroupBuilder::stream(StreamId id) {
  if (last_stream_ && last_stream_->id == id) return last_stream_.get();
  if (deleted_queues_.contains(Sequence{id.queue.value})) return nullptr;
  auto found = streams_.find(id);
  if (found.fate == StreamTable::Fate::deleted) return nullptr;
  if (found.fate == StreamTable::Fate::unknown) streams_.add_queue(id.queue);
  if (!found.stream) found.stream = streams_.add_stream(id, Sequence{1});
  last_stream_ = std::move(found.stream);
  return last_stream_.get();
}

void GroupBuilder::make_persistent(StreamState& state) {
  if (state.persistent) return;
  state.persistent = true;
  durable_.Put(database_.queues(), slice(queue_key(state.id.queue)), {&kQueueAlive, 1});
  if (state.id.queue >= next_queue_id_) {
    next_queue_id_ = state.id.queue.next();
    next_queue_id_changed_ = true;
  }
  touch(state);
}

void GroupBuilder::touch(StreamState& state) {
  STOAT_ASSERT(&state == last_stream_.get(), state.id.queue);
  if (state.record_changed) return;
  state.record_changed = true;
  touched_.push_back(last_stream_);
}

}  // namespace stoat::store
