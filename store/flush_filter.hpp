#pragma once

#include <memory>

#include "rocksdb/compaction_filter.h"
#include "store/stream_table.hpp"

namespace stoat::store {

// Drops settled messages whenever RocksDB writes a table, the flush of a write buffer included: a
// message that was settled while still in memory never reaches a table, and needs no tombstone.
//
// It answers kRemoveAndSkipUntil(the next key not settled), which jumps over a whole run; kRemove
// would leave a tombstone for each message at flush. It goes by synced marks alone (StreamState). A
// queue it does not know it keeps: better a message too many on disk than one too few. It does not
// run while the log is replayed, when the marks are not yet known.
//
// RocksDB ignores snapshots here: what is read must be read through iterators, which keep the write
// buffers and tables they were made on.
//
// Owner: RocksDB. Thread: those of RocksDB, a filter of its own for each table.
class FlushFilterFactory final : public rocksdb::CompactionFilterFactory {
 public:
  explicit FlushFilterFactory(std::shared_ptr<const StreamTable> streams)
      : streams_(std::move(streams)) {}

  bool ShouldFilterTableFileCreation(rocksdb::TableFileCreationReason reason) const override;
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& context) override;
  const char* Name() const override { return "stoat.flush-filter"; }

 private:
  std::shared_ptr<const StreamTable> streams_;
};

}  // namespace stoat::store
