#include "store/database.hpp"

#include <algorithm>
#include <vector>

#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/transaction_log.h"
#include "store/body_filter.hpp"
#include "store/error_text.hpp"
#include "store/flush_filter.hpp"
#include "store/info_log.hpp"
#include "store/key_layout.hpp"

namespace stoat::store {
namespace {

// Messages are read in order and, as a rule, once: the cache only has to bridge two reads of one
// block and to hold what the small families are asked for.
constexpr std::size_t kBlockCacheBytes = 8u << 20;
constexpr std::size_t kMessageBlockBytes = 32u << 10;
constexpr int kMaxOpenFiles = 256;
constexpr std::size_t kSmallWriteBufferBytes = 4u << 20;
constexpr std::size_t kSmallArenaBytes = 64u << 10;
constexpr std::uint64_t kMaxManifestBytes = 4u << 20;
constexpr std::size_t kScanReadaheadBytes = 256u << 10;

[[noreturn]] void refuse(const std::string& what, const rocksdb::Status& status) {
  throw StoreOpenError(what + ": " + error_text(status));
}

}  // namespace

Database::Database(const RocksOptions& options, const std::string& dir,
                   std::shared_ptr<const StreamTable> streams,
                   std::shared_ptr<rocksdb::EventListener> listener)
    : env_(options.env ? *options.env : *rocksdb::Env::Default()),
      dir_(dir),
      streams_(std::move(streams)),
      listener_(std::move(listener)),
      block_cache_(rocksdb::NewLRUCache(kBlockCacheBytes, /*num_shard_bits=*/2)),
      message_options_(message_options(options)) {
  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, small_options()},
      {kTopologyFamily, small_options()},
      {kQueuesFamily, small_options()},
      {kMessagesFamily, message_options_},
      {kTransientFamily, message_options_},
      {kBodiesFamily, body_options()}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  env_.CreateDirIfMissing(dir_).PermitUncheckedError();  // where it cannot be made, opening fails
  const auto status = rocksdb::DB::Open(db_options(options), dir_, families, &handles, &db);
  if (!status.ok()) {
    const bool damaged = status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound();
    throw StoreOpenError("cannot open " + dir_ + ": " + error_text(status) +
                         (damaged ? kDamagedAdvice : ""));
  }
  db_.reset(db);
  std::copy(handles.begin(), handles.end(), handles_.begin());
}

Database::~Database() {
  rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);
  for (auto* handle : handles_) {
    if (handle) db_->DestroyColumnFamilyHandle(handle);
  }
  db_->Close();
}

rocksdb::DBOptions Database::db_options(const RocksOptions& options) {
  rocksdb::DBOptions db;
  db.env = &env_;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.listeners.push_back(listener_);

  // What a power cut may leave is the log up to some point, whole groups only. check_wal has made
  // sure before that this point lies behind everything synced.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.wal_filter = &replay_guard_;
  // Replay runs at some 230 MB/s, so this is what a start after a crash takes.
  db.max_total_wal_size = options.write_buffer_bytes * 2;
  db.recycle_log_file_num = 0;            // not to be had with these recovery modes
  db.avoid_flush_during_shutdown = true;  // close() flushes what is worth it
  db.max_bgerror_resume_count = 0;        // FailureLatch

  // One thread writes; the machinery for several only costs.
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1u << 20;

  db.max_open_files = kMaxOpenFiles;
  db.max_manifest_file_size = kMaxManifestBytes;
  db.skip_stats_update_on_db_open = true;

  // An idle store sleeps.
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.info_log = std::make_shared<InfoLog>(options.on_log_line);
  return db;
}

rocksdb::ColumnFamilyOptions Database::message_options(const RocksOptions& options) const {
  rocksdb::ColumnFamilyOptions family;
  family.compaction_filter_factory = std::make_shared<FlushFilterFactory>(streams_);
  family.write_buffer_size = options.write_buffer_bytes;
  family.max_write_buffer_number = options.write_buffers;
  // Keys of one stream come in order: each is put next to the last one instead of being searched
  // for.
  family.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(9));
  family.compression = rocksdb::kNoCompression;

  // Tables of level 0 are often dead as a whole before they would be merged.
  family.level0_file_num_compaction_trigger = 8;
  family.level0_slowdown_writes_trigger = 40;
  family.level0_stop_writes_trigger = 64;
  family.num_levels = 5;
  family.target_file_size_base = options.write_buffer_bytes * 2;
  family.max_bytes_for_level_base = options.write_buffer_bytes * 16;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = block_cache_;
  table.block_size = kMessageBlockBytes;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

rocksdb::ColumnFamilyOptions Database::body_options() const {
  rocksdb::ColumnFamilyOptions family = message_options_;
  family.compaction_filter_factory = std::make_shared<BodyFilterFactory>(streams_);
  family.memtable_insert_with_hint_prefix_extractor.reset();  // one row of keys, not one a stream
  return family;
}

rocksdb::ColumnFamilyOptions Database::small_options() const {
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = kSmallWriteBufferBytes;
  family.arena_block_size = kSmallArenaBytes;
  family.compression = rocksdb::kNoCompression;
  family.num_levels = 3;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = block_cache_;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

rocksdb::ReadOptions Database::read_options() const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = kScanReadaheadBytes;
  return options;
}

std::uint64_t Database::wal_bytes() const {
  std::vector<rocksdb::Env::FileAttributes> files;
  std::uint64_t bytes = 0;
  if (!env_.GetChildrenFileAttributes(dir_, &files).ok()) return 0;
  for (const auto& file : files) {
    if (file.name.ends_with(".log")) bytes += file.size_bytes;
  }
  return bytes;
}

std::uint64_t Database::log_number() const {
  std::unique_ptr<rocksdb::LogFile> file;
  if (!db_->GetCurrentWalFile(&file).ok()) return 0;
  return file->LogNumber();
}

void Database::reset_transient() {
  auto& handle = handles_[4];
  std::unique_ptr<rocksdb::Iterator> any(db_->NewIterator(rocksdb::ReadOptions(), handle));
  any->SeekToFirst();
  if (any->status().ok() && !any->Valid()) return;  // empty as it is
  any.reset();
  auto status = db_->DropColumnFamily(handle);
  if (!status.ok()) refuse("cannot drop transient messages in " + dir_, status);
  db_->DestroyColumnFamilyHandle(handle);
  handle = nullptr;
  status = db_->CreateColumnFamily(message_options_, kTransientFamily, &handle);
  if (!status.ok()) refuse("cannot make room for transient messages in " + dir_, status);
}

}  // namespace stoat::store
