#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/wal_filter.h"
#include "store/key_layout.hpp"

namespace stoat::store {

// A place in the write-ahead log where bytes are damaged that had been synced.
struct WalDamage {
  std::string file;
  std::uint64_t offset = 0;
};

struct WalFile {
  std::uint64_t number;
  std::string path;
};
// The log's files in `dir` by their numbers, which is the order they were written in. Throws
// StoreOpenError when the folder cannot be read.
std::vector<WalFile> wal_files(rocksdb::Env& env, const std::string& dir);

// Reads the write-ahead log as it lies in `dir`, before RocksDB does. RocksDB replays up to the
// first bad entry and drops the rest without a word: right for the torn end that a power cut
// leaves, a silent loss of confirmed messages when the bad entry is older.
//
// Every entry tells (key_layout.hpp, GroupMark) which group it is and up to which group all was on
// the disk when it was written. So where an entry is bad or missing, a later one proves whether it
// had been synced: then it is damage; otherwise it may be what a power cut left of groups that were
// promised to nobody. The log's last group can be lost without anything to prove it by.
//
// Throws StoreOpenError when a file cannot be read. Changes nothing.
std::optional<WalDamage> check_wal(rocksdb::Env& env, const std::string& dir);

// Stops the replay where groups are missing between two entries that are both whole: an unsynced
// end of one file that a power cut took, before the beginning of the next file that it left.
//
// Owner: Database. Thread: the opening one.
class ReplayGuard final : public rocksdb::WalFilter {
 public:
  const char* Name() const override { return "stoat.replay-guard"; }
  WalProcessingOption LogRecordFound(unsigned long long log_number, const std::string& log_file,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* new_batch, bool* batch_changed) override;

 private:
  std::optional<GroupMark> last_;
};

}  // namespace stoat::store
