#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

namespace stoat::store::testing {

// A file system in memory that keeps apart what has been synced and what has not, so that a test
// can cut the power: what was not synced is then gone, or there in part, or garbled.
//
// What holds of it: bytes are safe once their file was synced; a name made, changed or removed is
// safe once its folder was synced; before that, changes of names reach the disk in order, and bytes
// in any.
//
// Owner: the test. Thread: any.
class ForgetfulFileSystem final : public rocksdb::FileSystem {
 public:
  enum class Operation { create, append, sync, rename, remove, sync_folder };
  // Decides whether an operation on a file fails.
  using Fault = std::function<rocksdb::IOStatus(Operation, const std::string& name)>;

  // From the n-th operation after this call on, that one included, all fail: the power is gone.
  void cut_after(std::uint64_t operations);
  std::uint64_t operations() const { return operations_; }
  bool is_cut() const { return cut_; }
  // What a disk would show when the power is back. Nothing unsynced is left when `tails` is null.
  void power_up(std::mt19937_64* tails);

  void set_fault(Fault fault);

  // For damaging and inspecting.
  std::vector<std::string> files_ending_in(const std::string& suffix) const;
  std::size_t bytes_ending_in(const std::string& suffix) const;
  std::string contents(const std::string& name) const;
  // Makes the file, and the folders it is in, when there are none.
  void set_contents(const std::string& name, std::string bytes);
  void remove(const std::string& name);

  static const char* kClassName() { return "ForgetfulFileSystem"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::IOStatus NewSequentialFile(const std::string&, const rocksdb::FileOptions&,
                                      std::unique_ptr<rocksdb::FSSequentialFile>*,
                                      rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string&, const rocksdb::FileOptions&,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>*,
                                        rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewWritableFile(const std::string&, const rocksdb::FileOptions&,
                                    std::unique_ptr<rocksdb::FSWritableFile>*,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewDirectory(const std::string&, const rocksdb::IOOptions&,
                                 std::unique_ptr<rocksdb::FSDirectory>*,
                                 rocksdb::IODebugContext*) override;
  rocksdb::IOStatus FileExists(const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetChildren(const std::string&, const rocksdb::IOOptions&,
                                std::vector<std::string>*, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteFile(const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDir(const std::string&, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string&, const rocksdb::IOOptions&,
                                       rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteDir(const std::string&, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileSize(const std::string&, const rocksdb::IOOptions&, uint64_t*,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string&, const rocksdb::IOOptions&,
                                            uint64_t*, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus RenameFile(const std::string&, const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus LockFile(const std::string&, const rocksdb::IOOptions&, rocksdb::FileLock**,
                             rocksdb::IODebugContext*) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock*, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions&, std::string*,
                                     rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string&, const rocksdb::IOOptions&, std::string*,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus IsDirectory(const std::string&, const rocksdb::IOOptions&, bool*,
                                rocksdb::IODebugContext*) override;

 private:
  class Reading;
  class Writing;
  class Folder;

  struct File {
    std::string bytes;
    std::size_t synced = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  using Folders = std::set<std::string>;
  // A change of one name that its folder has not been synced for: null removes it. Or a folder
  // takes the name, with all in it.
  struct NameChange {
    std::string name;
    std::shared_ptr<File> file;
    std::string folder_before;  // the folder's former name
  };

  // Counts the operation and says whether it may go on. With the lock held.
  rocksdb::IOStatus begin(Operation operation, const std::string& name);
  void change_name(const std::string& name, std::shared_ptr<File> file);
  void rename_folder(const std::string& from, const std::string& to);
  static void apply(Names& names, Folders& folders, const NameChange& change);
  static void lose_unsynced(const std::string& name, File& file, std::mt19937_64* tails);
  std::shared_ptr<File> find(const std::string& name) const;

  mutable std::mutex mutex_;
  Names names_;
  Names synced_names_;
  std::vector<NameChange> unsynced_changes_;
  Folders folders_{"/"};
  Folders synced_folders_{"/"};
  std::set<std::string> locks_;
  Fault fault_;
  std::atomic<std::uint64_t> operations_ = 0;
  std::uint64_t cut_at_ = ~std::uint64_t{0};
  std::atomic<bool> cut_ = false;
};

}  // namespace stoat::store::testing
