#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/db.h"
#include "store/folder_report.hpp"
#include "store/read_around.hpp"

namespace stoat::store {

// What can be had of a database folder in which anything may be damaged: a block of a table, whole
// tables, the log, the list of tables (MANIFEST, CURRENT). Changes nothing in it.
//
// The small families (meta, topology, queues), in which keys are overwritten and deleted, are read
// through RocksDB, which knows what is newer. Where RocksDB cannot open the folder as it is, it is
// given a copy (of links to the tables, where the file system has links) to make a new list of
// tables in; what the log says is then applied to that. The messages and bodies, whose keys are
// written once and never deleted, are read table by table and log entry by log entry, so that a bad
// spot in one file costs nothing that lies in another.
//
// Owner: check_folder or salvage_folder. Thread: one.
// Throws StoreOpenError where nothing can be read at all, for want of rights for example.
class DamagedDatabase {
 public:
  using Family = std::map<std::string, std::string>;

  // scratch_dir: where the copy may be made; removed again at the end.
  DamagedDatabase(rocksdb::Env& env, std::string dir, std::string scratch_dir);
  ~DamagedDatabase();
  DamagedDatabase(const DamagedDatabase&) = delete;
  DamagedDatabase& operator=(const DamagedDatabase&) = delete;

  const std::string& dir() const { return dir_; }
  // Grows while things are read. One for a file.
  const std::vector<Damage>& damage() const { return damage_; }
  void add_damage(std::string file, std::string what);

  const Family& meta() const { return meta_; }
  const Family& topology() const { return topology_; }
  const Family& queues() const { return queues_; }
  // False: keys of the family `queues` may be missing.
  bool queues_whole() const { return queues_whole_; }
  // False: a record may be older than the messages are.
  bool records_whole() const { return queues_whole_ && log_whole_; }

  // Everything in a family of this name (messages or bodies) that can be read, in no order; one may
  // come twice. `starts`: keys at which a stream's messages may begin, see read_around.
  void read(const char* family, const std::vector<std::string>& starts, const OnEntry& on_entry);

 private:
  class FullListing;
  struct Table {
    std::string path;
    std::string family;
    std::string first_key;  // empty: not known
  };

  std::string path(std::string_view name) const { return dir_ + "/" + std::string(name); }
  void close();
  Family* small_family(const std::string& name);
  void judge_log();
  rocksdb::Status open(const std::string& dir);
  void list_live_tables();
  void list_all_tables();
  void verify_tables();
  void open_copy();
  rocksdb::Status copy_tables();
  bool read_small_families();
  void apply_log_to_small_families();
  void for_each_log_entry(const std::function<void(std::string)>& on_batch);
  std::string file_named_in(const std::string& text) const;

  rocksdb::Env& env_;
  const std::string dir_;
  const std::string scratch_dir_;
  const std::shared_ptr<FullListing> listing_;
  const std::unique_ptr<rocksdb::Env> listing_env_;
  std::vector<Damage> damage_;
  std::vector<Table> tables_;  // those with anything to read
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::uint32_t messages_id_;  // of the family, as the log has it
  Family meta_;
  Family topology_;
  Family queues_;
  bool queues_whole_ = true;
  bool log_whole_ = true;
};

// Nothing was ever stored in this folder, or it is not there.
bool has_no_data(rocksdb::Env& env, const std::string& dir);
// Removes a folder of files; nothing where there is none. Throws StoreOpenError.
void remove_folder(rocksdb::Env& env, const std::string& dir);

}  // namespace stoat::store
