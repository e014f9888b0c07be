#include "store/data_folder.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "store/damaged_database.hpp"
#include "store/key_layout.hpp"
#include "store/open.hpp"

namespace stoat::store {
namespace {

constexpr std::string_view kFormatFile = "FORMAT";
constexpr std::string_view kNewFormatFile = "FORMAT.new";
constexpr std::string_view kLockFile = "LOCK";
constexpr std::string_view kFormatFirstLine = "StoatMQ data folder";
constexpr std::string_view kFormatField = "format: ";
constexpr std::size_t kMaxFormatFileBytes = 4096;

[[noreturn]] void refuse(const std::filesystem::path& dir, const std::string& why) {
  throw StoreOpenError("data folder " + dir.string() + " " + why);
}

std::string format_file_text() {
  return std::string(kFormatFirstLine) + "\n" + std::string(kFormatField) +
         std::to_string(kFormatVersion) + "\n";
}

// The version a FORMAT file names; 0 when it is none of ours.
int parse_format_file(std::string_view text) {
  if (!text.starts_with(kFormatFirstLine)) return 0;
  const auto field = text.find(kFormatField);
  if (field == std::string_view::npos) return 0;
  const char* digits = text.data() + field + kFormatField.size();
  int version = 0;
  std::from_chars(digits, text.data() + text.size(), version);
  return version;
}

// What may lie in a folder that counts as empty: what a first start leaves when it is killed before
// the FORMAT file stands, and what file systems put at their top.
bool may_lie_in_an_empty_folder(const std::string& name) {
  return name == "." || name == ".." || name == kLockFile || name == kNewFormatFile ||
         name == "lost+found";
}

// RocksDB says only in words whether a lock file is held (by another process, by this one) or could
// not be opened.
bool is_held(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return !status.ok() && (text.find("While lock file") != std::string::npos ||
                          text.find("lock hold by current process") != std::string::npos);
}

}  // namespace

DataFolder::DataFolder(rocksdb::Env& env, std::filesystem::path dir, Use use)
    : env_(env), dir_(std::move(dir)) {
  use == Use::open ? open() : look();
}

void DataFolder::open() {
  // Looked at before the lock, which would leave a file, and again under it.
  if (inspect() == kNoFormat) create();
  lock();
  try {
    if (inspect() != kFormatVersion) write_format_file();
    complete_exchange();
  } catch (...) {
    env_.UnlockFile(lock_);
    throw;
  }
}

void DataFolder::look() {
  if (inspect() == kNoFormat) refuse(dir_, "does not exist or is empty");
  // Without the file nobody holds the lock; taking it would make one.
  if (env_.FileExists(dir_ / kLockFile).ok()) lock();
}

void DataFolder::lock() {
  const auto status = env_.LockFile(dir_ / kLockFile, &lock_);
  if (is_held(status)) refuse(dir_, "is in use by another process");
  if (!status.ok()) refuse(dir_, "cannot be locked: " + status.ToString());
}

DataFolder::~DataFolder() {
  if (lock_) env_.UnlockFile(lock_);
}

int DataFolder::inspect() const {
  std::vector<std::string> names;
  const auto listed = env_.GetChildren(dir_, &names);
  if (listed.IsNotFound()) return kNoFormat;
  if (!listed.ok()) refuse(dir_, "cannot be read: " + listed.ToString());

  if (std::find(names.begin(), names.end(), kFormatFile) == names.end()) {
    if (std::all_of(names.begin(), names.end(), may_lie_in_an_empty_folder)) return kNoFormat;
    refuse(dir_, "is not empty and is no StoatMQ data folder (it has no FORMAT file)");
  }
  std::string text;
  std::uint64_t size = 0;
  const std::string file = dir_ / kFormatFile;
  auto status = env_.GetFileSize(file, &size);
  if (status.ok() && size > kMaxFormatFileBytes) {
    refuse(dir_, "has a FORMAT file that is none of StoatMQ's");
  }
  if (status.ok()) status = rocksdb::ReadFileToString(&env_, file, &text);
  if (!status.ok()) refuse(dir_, "cannot be read: " + status.ToString());

  const int version = parse_format_file(text);
  if (version < kOldestFormatVersion) {
    refuse(dir_, "has a FORMAT file that is none of StoatMQ's");
  }
  if (version > kFormatVersion) {
    refuse(dir_, "has format " + std::to_string(version) +
                     ", written by a newer StoatMQ; this one " + "knows formats up to " +
                     std::to_string(kFormatVersion));
  }
  return version;
}

void DataFolder::create() {
  std::filesystem::path made;
  for (const auto& part : dir_) {
    made /= part;
    const auto status = env_.CreateDirIfMissing(made);
    if (!status.ok()) refuse(dir_, "cannot be created: " + status.ToString());
  }
  if (&env_ == rocksdb::Env::Default()) {
    // Messages are nobody else's business. Where the file system knows no modes, so be it.
    std::error_code ignored;
    std::filesystem::permissions(dir_, std::filesystem::perms::owner_all, ignored);
  }
  if (dir_.has_parent_path()) sync(dir_.parent_path());
}

void DataFolder::begin_salvage() {
  remove_folder(env_, salvage_dir());
  remove_folder(env_, salvaged_dir());
}

// Each step is on the disk before the next: whatever is there at a start tells how far it came.
std::string DataFolder::exchange_for_salvaged() {
  rename(salvage_dir(), salvaged_dir());
  std::filesystem::path aside = dir_ / "db.damaged";
  for (int number = 2; env_.FileExists(aside).ok(); ++number) {
    aside = dir_ / ("db.damaged-" + std::to_string(number));
  }
  rename(database_dir(), aside);
  rename(salvaged_dir(), database_dir());
  return aside;
}

void DataFolder::complete_exchange() {
  if (!env_.FileExists(salvaged_dir()).ok()) return;
  if (!env_.FileExists(database_dir()).ok()) rename(salvaged_dir(), database_dir());
}

void DataFolder::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto status = env_.RenameFile(from, to);
  if (!status.ok()) refuse(dir_, "cannot be written to: " + status.ToString());
  sync(dir_);
}

void DataFolder::write_format_file() {
  const std::string fresh = dir_ / kNewFormatFile;
  auto status = rocksdb::WriteStringToFile(&env_, format_file_text(), fresh, /*should_sync=*/true);
  if (status.ok()) status = env_.RenameFile(fresh, dir_ / kFormatFile);
  if (!status.ok()) refuse(dir_, "cannot be written to: " + status.ToString());
  sync(dir_);
}

void DataFolder::sync(const std::filesystem::path& dir) {
  std::unique_ptr<rocksdb::Directory> directory;
  auto status = env_.NewDirectory(dir, &directory);
  if (status.ok()) status = directory->Fsync();
  if (!status.ok()) refuse(dir_, "cannot be written to: " + status.ToString());
}

}  // namespace stoat::store
