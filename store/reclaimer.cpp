#include "store/reclaimer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/thread_name.hpp"
#include "rocksdb/convenience.h"
#include "store/key_layout.hpp"

namespace stoat::store {
namespace {

// Settled positions that are worth a look at the tables even if their bytes are not known to be.
constexpr std::uint64_t kSettledPositionsWorthALook = 256u << 10;

template <std::size_t N>
rocksdb::Slice slice(const Key<N>& key) {
  return {key.bytes.data(), N};
}

struct KeyRange {
  MessageKey begin;
  MessageKey end;  // exclusive
};

KeyRange range_of(QueueId queue) {
  return {message_key({queue, 0}, Sequence{0}), message_key_after(queue)};
}

}  // namespace

Reclaimer::Reclaimer(Database& database, StreamTable& streams, const GroupBuilder& builder,
                     std::uint64_t dead_bytes_worth_merging, std::vector<QueueId> deleted,
                     Forget forget)
    : database_(database),
      streams_(streams),
      builder_(builder),
      dead_bytes_worth_merging_(dead_bytes_worth_merging),
      forget_(std::move(forget)),
      due_{false, !deleted.empty(), false},
      deleted_(std::move(deleted)) {}

Reclaimer::~Reclaimer() {
  stop();
}

void Reclaimer::start() {
  thread_ = std::thread([this] { run(); });
}

void Reclaimer::published(const UnsyncedMarks::Published& marks) {
  std::lock_guard lock(mutex_);
  settled_bytes_ += marks.bytes;
  settled_positions_ += marks.positions;
  deleted_.insert(deleted_.end(), marks.deleted.begin(), marks.deleted.end());
  const bool tables = settled_bytes_ >= dead_bytes_worth_merging_ ||
                      settled_positions_ >= kSettledPositionsWorthALook;
  const bool queues = !marks.deleted.empty();
  if (!tables && !queues) return;
  due_.tables |= tables;
  due_.queues |= queues;
  wake_.notify_one();
}

void Reclaimer::tables_written() {
  std::lock_guard lock(mutex_);
  if (deleted_.empty()) return;
  due_.queues = true;
  wake_.notify_one();
}

void Reclaimer::stop_merging() {
  std::lock_guard lock(mutex_);
  due_.stop_merging = true;
  wake_.notify_one();
}

void Reclaimer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::size_t Reclaimer::queues_being_freed() const {
  std::lock_guard lock(mutex_);
  return deleted_.size();
}

void Reclaimer::run() {
  name_this_thread("store-reclaimer");
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock,
               [this] { return stopping_ || due_.tables || due_.queues || due_.stop_merging; });
    if (stopping_) return;
    const Due due = std::exchange(due_, {});
    if (due.tables) settled_bytes_ = settled_positions_ = 0;
    lock.unlock();
    if (due.stop_merging) turn_off_merging();
    drop_dead_tables();
    if (due.tables) merge_where_mostly_dead();
    look_after_deleted_queues();
    lock.lock();
  }
}

void Reclaimer::drop_dead_tables() {
  std::vector<KeyRange> dead;
  for (const auto& stream : streams_.all()) {
    const Sequence watermark = stream->synced_watermark();
    if (watermark <= stream->reclaimed_to) continue;
    stream->reclaimed_to = watermark;
    dead.push_back({message_key(stream->id, Sequence{0}), message_key(stream->id, watermark)});
  }
  {
    std::lock_guard lock(mutex_);
    for (QueueId queue : deleted_) dead.push_back(range_of(queue));
  }
  std::vector<rocksdb::Slice> bounds;
  bounds.reserve(dead.size() * 2);  // pointed into below
  std::vector<rocksdb::RangePtr> ranges;
  for (const KeyRange& range : dead) {
    bounds.push_back(slice(range.begin));
    bounds.push_back(slice(range.end));
    ranges.emplace_back(&bounds[bounds.size() - 2], &bounds[bounds.size() - 1]);
  }
  for (auto* family : {database_.messages(), database_.transient()}) {
    // Where this fails RocksDB reports it as an error of its own, which closes the latch.
    rocksdb::DeleteFilesInRanges(&database_.db(), family, ranges.data(), ranges.size(),
                                 /*include_end=*/false)
        .PermitUncheckedError();
  }
}

void Reclaimer::turn_off_merging() {
  merging_ = false;
  for (auto* family : {database_.meta(), database_.topology(), database_.queues(),
                       database_.messages(), database_.transient(), database_.bodies()}) {
    database_.db()
        .SetOptions(family, {{"disable_auto_compactions", "true"}})
        .PermitUncheckedError();
  }
}

void Reclaimer::merge_where_mostly_dead() {
  const std::uint64_t held = table_bytes(database_.messages());
  const std::uint64_t alive = builder_.alive_bytes();
  if (held >= alive && held - alive >= std::max(dead_bytes_worth_merging_, alive)) {
    merge(database_.messages(), nullptr, nullptr);
  }
  // Whoever shares a body counts all of it among what is alive, so bodies that outweigh that are
  // dead for the greater part. Fewer dead ones go as their tables are merged in the ordinary way.
  const std::uint64_t bodies = table_bytes(database_.bodies());
  if (bodies >= alive && bodies - alive >= std::max(dead_bytes_worth_merging_, alive)) {
    merge(database_.bodies(), nullptr, nullptr);
  }
  // How much of the transient messages is alive nobody counts; but all of them are dead often
  // enough.
  if (table_bytes(database_.transient()) >= dead_bytes_worth_merging_ && transient_all_dead()) {
    merge(database_.transient(), nullptr, nullptr);
  }
}

void Reclaimer::merge(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice* begin,
                      const rocksdb::Slice* end) {
  if (!merging_) return;
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.canceled = &stopping_;
  database_.db().CompactRange(options, family, begin, end).PermitUncheckedError();
}

void Reclaimer::look_after_deleted_queues() {
  std::vector<QueueId> deleted;
  {
    std::lock_guard lock(mutex_);
    deleted = deleted_;
  }
  if (deleted.empty()) return;

  for (QueueId queue : deleted) {
    if (stopping_) return;
    const KeyRange range = range_of(queue);
    const rocksdb::Slice begin = slice(range.begin);
    const rocksdb::Slice end = slice(range.end);
    for (auto* family : {database_.messages(), database_.transient()}) {
      if (table_bytes(family, queue) >= dead_bytes_worth_merging_) merge(family, &begin, &end);
    }
  }

  std::vector<QueueId> gone;
  auto& db = database_.db();
  std::unique_ptr<rocksdb::Iterator> durable(
      db.NewIterator(rocksdb::ReadOptions(), database_.messages()));
  std::unique_ptr<rocksdb::Iterator> transient(
      db.NewIterator(rocksdb::ReadOptions(), database_.transient()));
  for (QueueId queue : deleted) {
    if (!has_keys(*durable, queue) && !has_keys(*transient, queue)) gone.push_back(queue);
  }
  if (gone.empty()) return;
  std::sort(gone.begin(), gone.end());
  {
    std::lock_guard lock(mutex_);
    std::erase_if(deleted_, [&](QueueId queue) {
      return std::binary_search(gone.begin(), gone.end(), queue);
    });
  }
  forget_(std::move(gone));
}

bool Reclaimer::has_keys(rocksdb::Iterator& keys, QueueId queue) const {
  const KeyRange range = range_of(queue);
  keys.Seek(slice(range.begin));
  if (!keys.Valid()) return !keys.status().ok();  // cannot tell: later
  return keys.key().compare(slice(range.end)) < 0;
}

bool Reclaimer::transient_all_dead() const {
  for (const auto& stream : streams_.all()) {
    if (stream->synced_watermark().value <= stream->last_transient) return false;
  }
  return true;
}

std::uint64_t Reclaimer::table_bytes(rocksdb::ColumnFamilyHandle* family) const {
  std::uint64_t bytes = 0;
  database_.db().GetIntProperty(family, rocksdb::DB::Properties::kLiveSstFilesSize, &bytes);
  return bytes;
}

std::uint64_t Reclaimer::table_bytes(rocksdb::ColumnFamilyHandle* family, QueueId queue) const {
  const KeyRange keys = range_of(queue);
  const rocksdb::Range range(slice(keys.begin), slice(keys.end));
  std::uint64_t bytes = 0;
  rocksdb::SizeApproximationOptions options;  // of tables only
  database_.db().GetApproximateSizes(options, family, &range, 1, &bytes).PermitUncheckedError();
  return bytes;
}

}  // namespace stoat::store
