#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "rocksdb/iterator.h"
#include "store/database.hpp"
#include "store/group_builder.hpp"
#include "store/stream_table.hpp"
#include "store/unsynced_marks.hpp"

namespace stoat::store {

// Gives disk space back. The flush filter drops what is dead whenever a table is written; but
// tables that nothing is merged into any more would keep their dead for ever. So whenever a good
// deal has been settled, and when queues are deleted, it
//   - drops tables in which everything is dead, without reading them;
//   - has a family merged anew when more of it is dead than alive;
//   - lets go of a deleted queue's key once nothing is left in its range.
// The marks it goes by are the synced ones. No range tombstones: how they and the filter's skipping
// get along is nowhere promised, and the filter needs none. What it leaves undone at a stop it goes
// on with at the next start.
//
// Owner: RocksStore. Thread: one of its own, asleep until told; never waited for by the committer.
class Reclaimer {
 public:
  using Forget = std::function<void(std::vector<QueueId>)>;

  // dead_bytes_worth_merging: below this much, dead tables are left to the ordinary merging.
  Reclaimer(Database& database, StreamTable& streams, const GroupBuilder& builder,
            std::uint64_t dead_bytes_worth_merging, std::vector<QueueId> deleted, Forget forget);
  ~Reclaimer();

  // Apart from construction, since `forget` reaches for what is made later.
  void start();
  void published(const UnsyncedMarks::Published& marks);
  // RocksDB has written tables: deleted queues may be gone from them.
  void tables_written();
  // A table cannot be read: merges, which would only fail again and again, are given up until the
  // next start. Tables that are dead as a whole are still dropped.
  void stop_merging();
  void stop();
  std::size_t queues_being_freed() const;

 private:
  struct Due {
    bool tables = false;  // enough was settled to look through the tables
    bool queues = false;
    bool stop_merging = false;
  };

  void run();
  void drop_dead_tables();
  void turn_off_merging();
  void merge_where_mostly_dead();
  void merge(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice* begin,
             const rocksdb::Slice* end);
  void look_after_deleted_queues();
  bool has_keys(rocksdb::Iterator& keys, QueueId queue) const;
  bool transient_all_dead() const;
  std::uint64_t table_bytes(rocksdb::ColumnFamilyHandle* family) const;
  std::uint64_t table_bytes(rocksdb::ColumnFamilyHandle* family, QueueId queue) const;

  Database& database_;
  StreamTable& streams_;
  const GroupBuilder& builder_;
  const std::uint64_t dead_bytes_worth_merging_;
  const Forget forget_;

  mutable std::mutex mutex_;  // guards what follows, down to deleted_
  std::condition_variable wake_;
  Due due_;
  std::uint64_t settled_bytes_ = 0;  // since the tables were last looked through
  std::uint64_t settled_positions_ = 0;
  std::vector<QueueId> deleted_;
  std::atomic<bool> stopping_ = false;

  bool merging_ = true;  // its thread's own

  std::thread thread_;
};

}  // namespace stoat::store
