#pragma once

#include <array>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/listener.h"
#include "store/open.hpp"
#include "store/stream_table.hpp"
#include "store/wal_check.hpp"

namespace stoat::store {

// RocksDB as this store uses it: its options, its column families (key_layout.hpp), opened and
// closed. Says how a write is made, not what is written.
//
// Owner: RocksStore. Thread: as rocksdb::DB, any; reset_transient before any other thread.
// Throws StoreOpenError from the constructor and from reset_transient.
class Database {
 public:
  // The filters of what is dead ask `streams`.
  Database(const RocksOptions& options, const std::string& dir,
           std::shared_ptr<const StreamTable> streams,
           std::shared_ptr<rocksdb::EventListener> listener);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() { return *db_; }
  const std::string& dir() const { return dir_; }
  rocksdb::ColumnFamilyHandle* meta() const { return handles_[0]; }
  rocksdb::ColumnFamilyHandle* topology() const { return handles_[1]; }
  rocksdb::ColumnFamilyHandle* queues() const { return handles_[2]; }
  rocksdb::ColumnFamilyHandle* messages() const { return handles_[3]; }
  rocksdb::ColumnFamilyHandle* transient() const { return handles_[4]; }
  rocksdb::ColumnFamilyHandle* bodies() const { return handles_[5]; }

  // For a scan or a seek: nothing goes into the block cache but what is asked for again.
  rocksdb::ReadOptions read_options() const;
  std::uint64_t wal_bytes() const;
  // Of the log file being written.
  std::uint64_t log_number() const;

  // Empties the family of transient messages.
  void reset_transient();

 private:
  rocksdb::DBOptions db_options(const RocksOptions& options);
  rocksdb::ColumnFamilyOptions message_options(const RocksOptions& options) const;
  rocksdb::ColumnFamilyOptions body_options() const;
  rocksdb::ColumnFamilyOptions small_options() const;

  rocksdb::Env& env_;
  const std::string dir_;
  std::shared_ptr<const StreamTable> streams_;
  std::shared_ptr<rocksdb::EventListener> listener_;
  std::shared_ptr<rocksdb::Cache> block_cache_;
  ReplayGuard replay_guard_;
  rocksdb::ColumnFamilyOptions message_options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, 6> handles_{};
};

}  // namespace stoat::store
