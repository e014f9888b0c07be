#include "store/damaged_database.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/write_batch.h"
#include "store/error_text.hpp"
#include "store/info_log.hpp"
#include "store/key_layout.hpp"
#include "store/open.hpp"
#include "store/wal_check.hpp"
#include "store/wal_reader.hpp"

namespace stoat::store {
namespace {

constexpr std::string_view kTableSuffix = ".sst";
// As Database makes them, in this order; that of the transient ones changes.
constexpr std::uint32_t kMetaId = 0;
constexpr std::uint32_t kTopologyId = 1;
constexpr std::uint32_t kQueuesId = 2;
constexpr std::uint32_t kMessagesId = 3;
// The fewest there can be: RocksDB looks into some tables as it opens, which is not to fail.
constexpr int kMaxOpenFiles = 20;

rocksdb::DBOptions db_options(rocksdb::Env& env) {
  rocksdb::DBOptions options;
  options.env = &env;
  options.info_log = std::make_shared<InfoLog>(InfoLog::OnLine{});
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  options.skip_checking_sst_file_sizes_on_db_open = true;
  options.verify_sst_unique_id_in_manifest = false;
  options.skip_stats_update_on_db_open = true;
  options.max_open_files = kMaxOpenFiles;
  return options;
}

rocksdb::Options table_options(rocksdb::Env& env) {
  return {db_options(env), rocksdb::ColumnFamilyOptions()};
}

rocksdb::ReadOptions scan_options() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

MakeIterator iterators(rocksdb::SstFileReader& reader) {
  return
      [&reader] { return std::unique_ptr<rocksdb::Iterator>(reader.NewIterator(scan_options())); };
}

// "Missing sst file 000012.sst in ..."
std::optional<std::string> missing_table_in(const std::string& text) {
  constexpr std::string_view kWords = "Missing sst file ";
  const auto at = text.find(kWords);
  if (at == std::string::npos) return std::nullopt;
  const auto begin = at + kWords.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

std::vector<std::string> children(rocksdb::Env& env, const std::string& dir) {
  std::vector<std::string> names;
  const auto status = env.GetChildren(dir, &names);
  if (!status.ok() && !status.IsNotFound()) {
    throw StoreOpenError("cannot read " + dir + ": " + error_text(status));
  }
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  return names;
}

// Hands on what a log entry does to the families it is asked about.
class LogEntry final : public rocksdb::WriteBatch::Handler {
 public:
  using OnPut = std::function<void(std::uint32_t family, const rocksdb::Slice& key,
                                   const rocksdb::Slice& value)>;
  using OnErase = std::function<void(std::uint32_t family, const rocksdb::Slice& key)>;

  LogEntry(OnPut on_put, OnErase on_erase)
      : on_put_(std::move(on_put)), on_erase_(std::move(on_erase)) {}

  rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    on_put_(family, key, value);
    return {};
  }
  rocksdb::Status DeleteCF(std::uint32_t family, const rocksdb::Slice& key) override {
    on_erase_(family, key);
    return {};
  }

 private:
  const OnPut on_put_;
  const OnErase on_erase_;
};

}  // namespace

// RocksDB does not open a folder in which a table is not listed. Here it is told that it is, and
// meets the missing file only when it reads from it.
class DamagedDatabase::FullListing final : public rocksdb::FileSystemWrapper {
 public:
  explicit FullListing(const std::shared_ptr<rocksdb::FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "stoat.full-listing"; }

  void add(const std::string& table) { missing_.push_back(table); }
  rocksdb::IOStatus GetChildren(const std::string& dir, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* debug) override {
    auto status = target()->GetChildren(dir, options, names, debug);
    if (status.ok()) names->insert(names->end(), missing_.begin(), missing_.end());
    return status;
  }

 private:
  std::vector<std::string> missing_;
};

DamagedDatabase::DamagedDatabase(rocksdb::Env& env, std::string dir, std::string scratch_dir)
    : env_(env),
      dir_(std::move(dir)),
      scratch_dir_(std::move(scratch_dir)),
      listing_(std::make_shared<FullListing>(env.GetFileSystem())),
      listing_env_(rocksdb::NewCompositeEnv(listing_)),
      messages_id_(kMessagesId) {
  judge_log();
  const auto opened = open(dir_);
  if (opened.ok()) {
    list_live_tables();
  } else {
    const std::string text = error_text(opened);
    add_damage(file_named_in(text), "cannot be opened: " + text);
    list_all_tables();
  }
  verify_tables();
  if (!opened.ok() || !read_small_families()) open_copy();
}

DamagedDatabase::~DamagedDatabase() {
  close();
}

void DamagedDatabase::close() {
  for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  handles_.clear();
  db_.reset();
}

// nullptr: not one of those.
DamagedDatabase::Family* DamagedDatabase::small_family(const std::string& name) {
  if (name == rocksdb::kDefaultColumnFamilyName) return &meta_;
  if (name == kTopologyFamily) return &topology_;
  return name == kQueuesFamily ? &queues_ : nullptr;
}

void DamagedDatabase::add_damage(std::string file, std::string what) {
  for (const Damage& known : damage_) {
    if (known.file == file) return;  // the first thing said of it is what the rest comes from
  }
  damage_.push_back({std::move(file), std::move(what)});
}

void DamagedDatabase::judge_log() {
  try {
    if (const auto damage = check_wal(env_, dir_)) {
      log_whole_ = false;
      add_damage(damage->file, "at byte " + std::to_string(damage->offset) +
                                   " has lost data that was on the disk");
    }
  } catch (const StoreOpenError& error) {
    log_whole_ = false;
    add_damage(file_named_in(error.what()), error.what());
  }
}

rocksdb::Status DamagedDatabase::open(const std::string& dir) {
  std::vector<std::string> names;
  auto status = rocksdb::DB::ListColumnFamilies(db_options(env_), dir, &names);
  if (!status.ok()) return status;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  while (true) {
    rocksdb::DB* db = nullptr;
    status = rocksdb::DB::OpenForReadOnly(db_options(*listing_env_), dir, families, &handles_, &db);
    db_.reset(db);
    const auto missing = missing_table_in(error_text(status));
    if (!missing) return status;
    listing_->add(*missing);
  }
}

void DamagedDatabase::list_live_tables() {
  std::vector<rocksdb::LiveFileMetaData> live;
  db_->GetLiveFilesMetaData(&live);
  for (const auto& file : live) {
    const std::string table = path(file.relative_filename);
    std::uint64_t size = 0;
    const auto status = env_.GetFileSize(table, &size);
    if (!status.ok()) {
      add_damage(table, "cannot be found or read: " + error_text(status));
    } else if (size != file.size) {
      add_damage(table,
                 "has " + std::to_string(size) + " bytes instead of " + std::to_string(file.size));
    }
    tables_.push_back({table, file.column_family_name, file.smallestkey});
  }
  std::sort(tables_.begin(), tables_.end(),
            [](const Table& a, const Table& b) { return a.path < b.path; });
  for (auto* handle : handles_) {
    if (handle->GetName() == kMessagesFamily) messages_id_ = handle->GetID();
  }
}

void DamagedDatabase::list_all_tables() {
  for (const auto& name : children(env_, dir_)) {
    if (name.ends_with(kTableSuffix)) tables_.push_back({path(name), {}, {}});
  }
}

void DamagedDatabase::verify_tables() {
  std::erase_if(tables_, [this](Table& table) {
    rocksdb::SstFileReader reader(table_options(env_));
    const auto opened = reader.Open(table.path);
    if (!opened.ok()) {
      add_damage(table.path, "cannot be opened: " + error_text(opened));
      // A small family cannot be read through RocksDB then.
      if (table.family == kQueuesFamily || table.family.empty()) queues_whole_ = false;
      return true;
    }
    table.family = reader.GetTableProperties()->column_family_name;
    if (const auto status = reader.VerifyChecksum(); !status.ok()) {
      add_damage(table.path, error_text(status));
      if (table.family == kQueuesFamily) queues_whole_ = false;
    }
    return false;
  });
}

// False: there is a part of them that cannot be got past.
bool DamagedDatabase::read_small_families() {
  for (auto* handle : handles_) {
    Family* family = small_family(handle->GetName());
    if (!family) continue;
    const auto make = [&] {
      return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(scan_options(), handle));
    };
    const auto status = read_around(make, {}, [&](const auto& key, const auto& value) {
      (*family)[key.ToString()] = value.ToString();
    });
    if (status.ok()) continue;
    const std::string text = error_text(status);
    add_damage(file_named_in(text), text);
    if (family == &queues_) queues_whole_ = false;
    if (!status.IsCorruption()) return false;  // a table is not there at all
  }
  return true;
}

// The small families' tables alone, with a new list of them.
void DamagedDatabase::open_copy() {
  close();
  // What RocksDB leaves out of the new list for a bad block in it comes first, to be overwritten by
  // whatever is newer. Something deleted long ago may come back with it.
  for (const Table& table : tables_) {
    Family* family = small_family(table.family);
    rocksdb::SstFileReader reader(table_options(env_));
    if (!family || !reader.Open(table.path).ok() || reader.VerifyChecksum().ok()) continue;
    read_around(iterators(reader), {}, [&](const auto& key, const auto& value) {
      (*family)[key.ToString()] = value.ToString();
    }).PermitUncheckedError();
  }
  auto status = copy_tables();
  if (status.ok()) status = open(scratch_dir_);
  if (status.ok()) read_small_families();
  close();
  remove_folder(env_, scratch_dir_ + "/lost");
  remove_folder(env_, scratch_dir_);
  apply_log_to_small_families();
}

rocksdb::Status DamagedDatabase::copy_tables() {
  remove_folder(env_, scratch_dir_ + "/lost");
  remove_folder(env_, scratch_dir_);
  auto status = env_.CreateDirIfMissing(scratch_dir_);
  bool any = false;
  for (const Table& table : tables_) {
    if (!small_family(table.family)) continue;
    any = true;
    const std::string to = scratch_dir_ + table.path.substr(dir_.size());
    if (env_.LinkFile(table.path, to).ok()) continue;
    std::string bytes;
    if (status.ok()) status = rocksdb::ReadFileToString(&env_, table.path, &bytes);
    if (status.ok()) status = rocksdb::WriteStringToFile(&env_, bytes, to);
  }
  if (!status.ok()) {
    throw StoreOpenError("cannot write to " + scratch_dir_ + ": " + error_text(status));
  }
  if (!any) return rocksdb::Status::NotFound();
  return rocksdb::RepairDB(scratch_dir_, db_options(env_),
                           {{rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions()}},
                           rocksdb::ColumnFamilyOptions());
}

void DamagedDatabase::apply_log_to_small_families() {
  const auto family_of = [this](std::uint32_t id) -> Family* {
    return id == kMetaId       ? &meta_
           : id == kTopologyId ? &topology_
           : id == kQueuesId   ? &queues_
                               : nullptr;
  };
  LogEntry entry(
      [&](std::uint32_t id, const rocksdb::Slice& key, const rocksdb::Slice& value) {
        if (Family* family = family_of(id)) (*family)[key.ToString()] = value.ToString();
      },
      [&](std::uint32_t id, const rocksdb::Slice& key) {
        if (Family* family = family_of(id)) family->erase(key.ToString());
      });
  for_each_log_entry([&](std::string batch) {
    rocksdb::WriteBatch(std::move(batch)).Iterate(&entry).PermitUncheckedError();
  });
}

// Only those that are this store's, and not what a message behind a bad spot makes look like one:
// every entry of a file is of the same epoch, which nobody outside knows.
void DamagedDatabase::for_each_log_entry(const std::function<void(std::string)>& on_batch) {
  for (const WalFile& file : wal_files(env_, dir_)) {
    try {
      std::optional<std::uint64_t> epoch;
      WalReader reader(env_, file.path, WalReader::Entries::whole);
      while (auto item = reader.next()) {
        if (item->bad || !item->mark) continue;
        if (!epoch) epoch = item->mark->epoch;
        if (item->mark->epoch == *epoch) on_batch(std::move(item->batch));
      }
    } catch (const StoreOpenError& error) {
      add_damage(file.path, error.what());
    }
  }
}

void DamagedDatabase::read(const char* family, const std::vector<std::string>& starts,
                           const OnEntry& on_entry) {
  for (const Table& table : tables_) {
    if (table.family != family) continue;
    rocksdb::SstFileReader reader(table_options(env_));
    auto status = reader.Open(table.path);
    if (status.ok()) {
      std::vector<std::string> likely = starts;
      likely.push_back(table.first_key);
      status = read_around(iterators(reader), std::move(likely), on_entry);
    }
    if (!status.ok()) add_damage(table.path, error_text(status));
  }
  // Behind the messages the log knows bodies alone: the transient ones go past it.
  const bool messages = family == std::string_view(kMessagesFamily);
  LogEntry entry(
      [&](std::uint32_t id, const rocksdb::Slice& key, const rocksdb::Slice& value) {
        if (messages ? id == messages_id_ : id > messages_id_) on_entry(key, value);
      },
      [](std::uint32_t, const rocksdb::Slice&) {});
  for_each_log_entry([&](std::string batch) {
    rocksdb::WriteBatch(std::move(batch)).Iterate(&entry).PermitUncheckedError();
  });
}

// RocksDB's errors name a file somewhere in their text; else it is the folder's list of files.
std::string DamagedDatabase::file_named_in(const std::string& text) const {
  if (const auto at = text.find(kTableSuffix); at != std::string::npos && at > 0) {
    const auto begin = text.find_last_not_of("0123456789", at - 1) + 1;
    return path(text.substr(begin, at + kTableSuffix.size() - begin));
  }
  for (const auto& name : children(env_, dir_)) {
    if (text.find(path(name)) != std::string::npos) return path(name);
  }
  std::string current;
  if (!rocksdb::ReadFileToString(&env_, path("CURRENT"), &current).ok()) return path("CURRENT");
  current.erase(current.find_last_not_of('\n') + 1);
  const bool is_there = env_.FileExists(path(current)).ok();
  return current.starts_with("MANIFEST-") && is_there ? path(current) : path("CURRENT");
}

bool has_no_data(rocksdb::Env& env, const std::string& dir) {
  const auto names = children(env, dir);
  return std::none_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "CURRENT" || name.ends_with(kTableSuffix) || name.ends_with(".log");
  });
}

void remove_folder(rocksdb::Env& env, const std::string& dir) {
  if (!env.FileExists(dir).ok()) return;
  rocksdb::Status status;
  for (const auto& name : children(env, dir)) {
    if (status.ok()) status = env.DeleteFile(dir + "/" + name);
  }
  if (status.ok()) status = env.DeleteDir(dir);
  if (!status.ok()) throw StoreOpenError("cannot remove " + dir + ": " + error_text(status));
}

}  // namespace stoat::store
