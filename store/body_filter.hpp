#pragma once

#include <memory>
#include <utility>

#include "rocksdb/compaction_filter.h"
#include "store/stream_table.hpp"

namespace stoat::store {

// Drops bodies whose every user is settled, when a table is written: what the FlushFilter is to
// messages. Goes by synced marks alone, and by nothing until recovery has told of every queue:
// from then on a queue that is not known is one that was deleted and forgotten.
//
// Owner: shared with RocksDB. Thread: any of RocksDB's.
class BodyFilterFactory final : public rocksdb::CompactionFilterFactory {
 public:
  explicit BodyFilterFactory(std::shared_ptr<const StreamTable> streams)
      : streams_(std::move(streams)) {}

  const char* Name() const override { return "stoat.body-filter"; }
  bool ShouldFilterTableFileCreation(rocksdb::TableFileCreationReason reason) const override;
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& context) override;

 private:
  std::shared_ptr<const StreamTable> streams_;
};

}  // namespace stoat::store
