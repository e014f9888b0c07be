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
// The upgrade rule: a folder of the same version is used as it is, one of a newer version is
// refused untouched, one of an older version is converted by the release that raised the version.
//
// Owner: RocksStore, for its whole life. Thread: the opening one.
// Throws StoreOpenError where the folder cannot be used; then nothing in it has been changed.
class DataFolder {
 public:
  DataFolder(rocksdb::Env& env, std::filesystem::path dir);
  ~DataFolder();
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  std::string database_dir() const { return dir_ / "db"; }

 private:
  static constexpr int kNoFormat = 0;  // absent or empty

  // The format version of a data folder of ours, or kNoFormat.
  int inspect() const;
  void create();
  void write_format_file();
  void sync(const std::filesystem::path& dir);

  rocksdb::Env& env_;
  const std::filesystem::path dir_;
  rocksdb::FileLock* lock_ = nullptr;
};

}  // namespace stoat::store
