#pragma once

#include <filesystem>
#include <string>

#include "rocksdb/env.h"

namespace stoat::store {

// The folder the data lives in:
//
//   FORMAT   says whose folder this is and in which version of key_layout.hpp its data is written
//   LOCK     held, by the operating system's means, while a process uses the folder
//   db/      RocksDB's files
//
// and, while or after a damaged database is salvaged (store/salvage.hpp),
//
//   db.salvage/   what is being made of it; worth nothing until it is whole
//   db.salvaged/  the whole, about to take the place of db/
//   db.damaged/   the damaged files as they were; further ones with -2, -3 ... at the end
//
// The upgrade rule: a folder of the same version is used as it is, one of a newer version is
// refused untouched, one of an older version is converted by the release that raised the version.
//
// Owner: RocksStore, for its whole life. Thread: the opening one.
// Throws StoreOpenError where the folder cannot be used; then nothing in it has been changed.
class DataFolder {
 public:
  // look: the folder must exist, and nothing in it is changed.
  enum class Use { open, look };

  DataFolder(rocksdb::Env& env, std::filesystem::path dir, Use use = Use::open);
  ~DataFolder();
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  std::string database_dir() const { return dir_ / "db"; }
  std::string salvage_dir() const { return dir_ / "db.salvage"; }
  std::string scratch_dir() const { return dir_ / "db.scratch"; }

  // Makes room for a new salvage.
  void begin_salvage();
  // The salvaged database is whole: from here on it is the database. Answers the folder in which
  // the damaged one is kept.
  std::string exchange_for_salvaged();

 private:
  static constexpr int kNoFormat = 0;  // absent or empty

  // The format version of a data folder of ours, or kNoFormat.
  int inspect() const;
  void create();
  void open();
  void look();
  void lock();
  // Completes an exchange that was interrupted.
  void complete_exchange();
  void rename(const std::filesystem::path& from, const std::filesystem::path& to);
  std::filesystem::path salvaged_dir() const { return dir_ / "db.salvaged"; }
  void write_format_file();
  void sync(const std::filesystem::path& dir);

  rocksdb::Env& env_;
  const std::filesystem::path dir_;
  rocksdb::FileLock* lock_ = nullptr;
};

}  // namespace stoat::store
