#include "tests/store/forgetful_file_system.hpp"

#include <algorithm>
#include <filesystem>

namespace stoat::store::testing {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

std::string tidy(const std::string& name) {
  std::string path = std::filesystem::path(name).lexically_normal();
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string folder_of(const std::string& name) {
  return std::filesystem::path(name).parent_path();
}

struct Lock final : rocksdb::FileLock {
  explicit Lock(std::string locked) : name(std::move(locked)) {}
  const std::string name;
};

}  // namespace

class ForgetfulFileSystem::Reading final : public rocksdb::FSSequentialFile,
                                           public rocksdb::FSRandomAccessFile {
 public:
  Reading(std::mutex& mutex, std::shared_ptr<File> file) : mutex_(mutex), file_(std::move(file)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    const IOStatus status = Read(at_, n, options, result, scratch, debug);
    at_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    at_ += n;
    return IOStatus::OK();
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    std::lock_guard lock(mutex_);
    const std::size_t size = file_->bytes.size();
    n = offset < size ? std::min<std::size_t>(n, size - offset) : 0;
    std::copy_n(file_->bytes.data() + std::min<std::size_t>(offset, size), n, scratch);
    *result = Slice(scratch, n);
    return IOStatus::OK();
  }
  // Both bases have these.
  bool use_direct_io() const override { return false; }
  size_t GetRequiredBufferAlignment() const override { return 1; }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }
  rocksdb::Temperature GetTemperature() const override { return rocksdb::Temperature::kUnknown; }

 private:
  std::mutex& mutex_;
  std::shared_ptr<File> file_;
  std::uint64_t at_ = 0;
};

class ForgetfulFileSystem::Writing final : public rocksdb::FSWritableFile {
 public:
  Writing(ForgetfulFileSystem& system, std::string name, std::shared_ptr<File> file)
      : system_(system), name_(std::move(name)), file_(std::move(file)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(system_.mutex_);
    IOStatus status = system_.begin(Operation::append, name_);
    if (status.ok()) file_->bytes.append(data.data(), data.size());
    return status;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(system_.mutex_);
    IOStatus status = system_.begin(Operation::sync, name_);
    if (status.ok()) file_->synced = file_->bytes.size();
    return status;
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(system_.mutex_);
    file_->bytes.resize(size);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(system_.mutex_);
    return file_->bytes.size();
  }

 private:
  ForgetfulFileSystem& system_;
  const std::string name_;
  std::shared_ptr<File> file_;
};

class ForgetfulFileSystem::Folder final : public rocksdb::FSDirectory {
 public:
  Folder(ForgetfulFileSystem& system, std::string name) : system_(system), name_(std::move(name)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(system_.mutex_);
    IOStatus status = system_.begin(Operation::sync_folder, name_);
    if (!status.ok()) return status;
    auto& changes = system_.unsynced_changes_;
    for (const auto& change : changes) {
      if (folder_of(change.name) == name_) {
        apply(system_.synced_names_, system_.synced_folders_, change);
      }
    }
    std::erase_if(changes, [&](const auto& change) { return folder_of(change.name) == name_; });
    return status;
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  ForgetfulFileSystem& system_;
  const std::string name_;
};

void ForgetfulFileSystem::cut_after(std::uint64_t operations) {
  std::lock_guard lock(mutex_);
  cut_at_ = operations_ + operations;
}

IOStatus ForgetfulFileSystem::begin(Operation operation, const std::string& name) {
  if (operations_++ >= cut_at_) cut_ = true;
  if (cut_) return IOStatus::IOError("the power is gone");
  return fault_ ? fault_(operation, name) : IOStatus::OK();
}

void ForgetfulFileSystem::set_fault(Fault fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void ForgetfulFileSystem::power_up(std::mt19937_64* tails) {
  std::lock_guard lock(mutex_);
  // The file system's journal keeps the order of names, but where it ends is chance.
  const std::size_t kept = tails ? (*tails)() % (unsynced_changes_.size() + 1) : 0;
  for (std::size_t i = 0; i < kept; ++i) {
    apply(synced_names_, synced_folders_, unsynced_changes_[i]);
  }
  unsynced_changes_.clear();
  names_ = synced_names_;
  folders_ = synced_folders_;
  for (auto& [name, file] : names_) {
    file = std::make_shared<File>(*file);  // what is still open from before writes elsewhere
    lose_unsynced(name, *file, tails);
  }
  synced_names_ = names_;
  locks_.clear();
  cut_ = false;
  cut_at_ = ~std::uint64_t{0};
}

// What becomes of bytes that were written and not synced. That all kinds of it happen to the log is
// the store's business; RocksDB's other files get what the usual file systems leave, which is a
// beginning of them.
void ForgetfulFileSystem::lose_unsynced(const std::string& name, File& file,
                                        std::mt19937_64* tails) {
  enum Fate : std::uint64_t { gone, kept, cut_short, a_page_missing, a_page_garbled, kFates };
  const std::size_t unsynced = file.bytes.size() - std::min(file.synced, file.bytes.size());
  if (unsynced > 0) {
    const bool is_log = name.ends_with(".log");
    const std::uint64_t fates = is_log ? kFates : a_page_missing;
    const std::uint64_t fate = tails ? (*tails)() % fates : std::uint64_t{gone};
    const std::size_t from = file.synced + (tails ? (*tails)() % unsynced : 0);
    if (fate == gone) file.bytes.resize(file.synced);
    if (fate == cut_short) file.bytes.resize(from);
    if (fate == a_page_missing || fate == a_page_garbled) {
      const std::size_t end = std::min<std::size_t>(file.bytes.size(), from + 512);
      for (std::size_t i = from; i < end; ++i) {
        file.bytes[i] = fate == a_page_missing ? '\0' : static_cast<char>((*tails)());
      }
    }
  }
  file.synced = file.bytes.size();
}

void ForgetfulFileSystem::apply(Names& names, Folders& folders, const NameChange& change) {
  if (!change.folder_before.empty()) {
    const std::string inside = change.folder_before + "/";
    Names moved;
    std::erase_if(names, [&](const auto& entry) {
      if (!entry.first.starts_with(inside)) return false;
      moved[change.name + "/" + entry.first.substr(inside.size())] = entry.second;
      return true;
    });
    names.merge(moved);
    folders.erase(change.folder_before);
    folders.insert(change.name);
  } else if (change.file) {
    names[change.name] = change.file;
  } else {
    names.erase(change.name);
  }
}

void ForgetfulFileSystem::change_name(const std::string& name, std::shared_ptr<File> file) {
  const NameChange change{name, std::move(file), {}};
  apply(names_, folders_, change);
  unsynced_changes_.push_back(change);
}

// What was changed inside and is not synced yet will be found under the new name.
void ForgetfulFileSystem::rename_folder(const std::string& from, const std::string& to) {
  const NameChange change{to, nullptr, from};
  apply(names_, folders_, change);
  for (NameChange& earlier : unsynced_changes_) {
    if (earlier.name.starts_with(from + "/")) earlier.name.replace(0, from.size(), to);
  }
  unsynced_changes_.push_back(change);
}

std::shared_ptr<ForgetfulFileSystem::File> ForgetfulFileSystem::find(
    const std::string& name) const {
  auto found = names_.find(tidy(name));
  return found == names_.end() ? nullptr : found->second;
}

std::vector<std::string> ForgetfulFileSystem::files_ending_in(const std::string& suffix) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (const auto& [name, file] : names_) {
    if (name.ends_with(suffix)) found.push_back(name);
  }
  return found;
}

std::size_t ForgetfulFileSystem::bytes_ending_in(const std::string& suffix) const {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [name, file] : names_) {
    if (name.ends_with(suffix)) bytes += file->bytes.size();
  }
  return bytes;
}

std::string ForgetfulFileSystem::contents(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return names_.at(tidy(name))->bytes;
}

void ForgetfulFileSystem::set_contents(const std::string& name, std::string bytes) {
  std::lock_guard lock(mutex_);
  auto file = std::make_shared<File>();
  file->bytes = std::move(bytes);
  file->synced = file->bytes.size();
  names_[tidy(name)] = synced_names_[tidy(name)] = std::move(file);
  for (std::string folder = folder_of(tidy(name)); folder != "/"; folder = folder_of(folder)) {
    folders_.insert(folder);
    synced_folders_.insert(folder);
  }
}

void ForgetfulFileSystem::remove(const std::string& name) {
  std::lock_guard lock(mutex_);
  names_.erase(tidy(name));
  synced_names_.erase(tidy(name));
}

IOStatus ForgetfulFileSystem::NewSequentialFile(const std::string& name, const FileOptions&,
                                                std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                                IODebugContext*) {
  std::lock_guard lock(mutex_);
  auto file = find(name);
  if (!file) return IOStatus::PathNotFound(name);
  *result = std::make_unique<Reading>(mutex_, std::move(file));
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions&,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext*) {
  std::lock_guard lock(mutex_);
  auto file = find(name);
  if (!file) return IOStatus::PathNotFound(name);
  *result = std::make_unique<Reading>(mutex_, std::move(file));
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::NewWritableFile(const std::string& name, const FileOptions&,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                                              IODebugContext*) {
  std::lock_guard lock(mutex_);
  IOStatus status = begin(Operation::create, name);
  if (!status.ok()) return status;
  if (!folders_.contains(folder_of(tidy(name)))) return IOStatus::PathNotFound(name);
  auto file = std::make_shared<File>();
  change_name(tidy(name), file);
  *result = std::make_unique<Writing>(*this, tidy(name), std::move(file));
  return status;
}

IOStatus ForgetfulFileSystem::NewDirectory(const std::string& name, const IOOptions&,
                                           std::unique_ptr<rocksdb::FSDirectory>* result,
                                           IODebugContext*) {
  std::lock_guard lock(mutex_);
  if (!folders_.contains(tidy(name))) return IOStatus::PathNotFound(name);
  *result = std::make_unique<Folder>(*this, tidy(name));
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::FileExists(const std::string& name, const IOOptions&,
                                         IODebugContext*) {
  std::lock_guard lock(mutex_);
  return find(name) || folders_.contains(tidy(name)) ? IOStatus::OK() : IOStatus::NotFound(name);
}

IOStatus ForgetfulFileSystem::GetChildren(const std::string& folder, const IOOptions&,
                                          std::vector<std::string>* result, IODebugContext*) {
  std::lock_guard lock(mutex_);
  if (!folders_.contains(tidy(folder))) return IOStatus::NotFound(folder);
  result->clear();
  const auto add = [&](const std::string& name) {
    if (name != "/" && folder_of(name) == tidy(folder)) {
      result->push_back(std::filesystem::path(name).filename());
    }
  };
  for (const auto& [name, file] : names_) add(name);
  for (const auto& name : folders_) add(name);
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::DeleteFile(const std::string& name, const IOOptions&,
                                         IODebugContext*) {
  std::lock_guard lock(mutex_);
  IOStatus status = begin(Operation::remove, name);
  if (!status.ok()) return status;
  if (!find(name)) return IOStatus::PathNotFound(name);
  change_name(tidy(name), nullptr);
  return status;
}

// Made and removed, folders are kept simple: that is so at once and for good.
IOStatus ForgetfulFileSystem::CreateDir(const std::string& name, const IOOptions&,
                                        IODebugContext*) {
  std::lock_guard lock(mutex_);
  synced_folders_.insert(tidy(name));
  return folders_.insert(tidy(name)).second ? IOStatus::OK() : IOStatus::IOError("exists", name);
}

IOStatus ForgetfulFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions&,
                                                 IODebugContext*) {
  std::lock_guard lock(mutex_);
  folders_.insert(tidy(name));
  synced_folders_.insert(tidy(name));
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::DeleteDir(const std::string& name, const IOOptions&,
                                        IODebugContext*) {
  std::lock_guard lock(mutex_);
  synced_folders_.erase(tidy(name));
  return folders_.erase(tidy(name)) ? IOStatus::OK() : IOStatus::PathNotFound(name);
}

IOStatus ForgetfulFileSystem::GetFileSize(const std::string& name, const IOOptions&, uint64_t* size,
                                          IODebugContext*) {
  std::lock_guard lock(mutex_);
  const auto file = find(name);
  if (!file) return IOStatus::PathNotFound(name);
  *size = file->bytes.size();
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::GetFileModificationTime(const std::string&, const IOOptions&,
                                                      uint64_t* time, IODebugContext*) {
  *time = 0;
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::RenameFile(const std::string& from, const std::string& to,
                                         const IOOptions&, IODebugContext*) {
  std::lock_guard lock(mutex_);
  IOStatus status = begin(Operation::rename, from);
  if (!status.ok()) return status;
  if (folders_.contains(tidy(from))) {
    rename_folder(tidy(from), tidy(to));
    return status;
  }
  auto file = find(from);
  if (!file) return IOStatus::PathNotFound(from);
  change_name(tidy(to), file);
  change_name(tidy(from), nullptr);
  return status;
}

IOStatus ForgetfulFileSystem::LockFile(const std::string& name, const IOOptions&,
                                       rocksdb::FileLock** lock, IODebugContext*) {
  std::lock_guard guard(mutex_);
  if (!locks_.insert(tidy(name)).second) {
    return IOStatus::IOError("lock hold by current process", name);
  }
  if (!find(name)) change_name(tidy(name), std::make_shared<File>());
  *lock = new Lock(tidy(name));
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&,
                                         IODebugContext*) {
  std::lock_guard guard(mutex_);
  locks_.erase(static_cast<Lock*>(lock)->name);
  delete lock;
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::GetTestDirectory(const IOOptions&, std::string* path,
                                               IODebugContext*) {
  *path = "/test";
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::GetAbsolutePath(const std::string& name, const IOOptions&,
                                              std::string* absolute, IODebugContext*) {
  *absolute = tidy(name);
  return IOStatus::OK();
}

IOStatus ForgetfulFileSystem::IsDirectory(const std::string& name, const IOOptions&, bool* is,
                                          IODebugContext*) {
  std::lock_guard lock(mutex_);
  *is = folders_.contains(tidy(name));
  return IOStatus::OK();
}

}  // namespace stoat::store::testing
