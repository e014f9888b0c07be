#include "store/wal_check.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "rocksdb/write_batch.h"
#include "store/open.hpp"
#include "store/wal_reader.hpp"

namespace stoat::store {
namespace {

constexpr std::string_view kWalSuffix = ".log";

// The log's files by their numbers, which is the order they were written in.
std::vector<std::pair<std::uint64_t, std::string>> wal_files(rocksdb::Env& env,
                                                             const std::string& dir) {
  std::vector<std::string> names;
  const auto status = env.GetChildren(dir, &names);
  if (status.IsNotFound()) return {};
  if (!status.ok()) throw StoreOpenError("cannot read " + dir + ": " + status.ToString());
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const auto& name : names) {
    if (!name.ends_with(kWalSuffix)) continue;
    const char* const digits_end = name.data() + name.size() - kWalSuffix.size();
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(name.data(), digits_end, number);
    if (parsed.ec == std::errc() && parsed.ptr == digits_end) {
      files.emplace_back(number, dir + "/" + name);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Follows the groups through the log and judges what comes behind the place where the replay will
// stop.
class Judge {
 public:
  // at_file_start: nothing whole came before it in this file.
  std::optional<WalDamage> see(const std::string& file, const WalReader::Item& item,
                               bool at_file_start) {
    if (item.bad) {
      if (!stop_) stop_ = WalDamage{file, item.offset};
      return std::nullopt;
    }
    if (!item.mark) return std::nullopt;  // proves nothing
    const GroupMark& mark = *item.mark;
    if (!last_ || mark.epoch != last_->epoch) {
      // Bytes in the midst of a file that look like an entry of another epoch are some message's.
      if (last_ && !at_file_start) return std::nullopt;
      enter_epoch(file, mark);
      return judge(mark);
    }
    if (!stop_ && mark.group == last_->group + 1) {
      last_ = mark;
      return std::nullopt;
    }
    if (!stop_) stop_ = WalDamage{file, item.offset};
    return judge(mark);
  }

 private:
  // Whoever opened the folder for a new epoch has dealt with the end of the one before. But where
  // this file itself begins badly, at least the group before this one is lost.
  void enter_epoch(const std::string& file, const GroupMark& mark) {
    last_ = mark;
    if (stop_ && stop_->file == file) {
      last_->group = mark.group < 2 ? 0 : mark.group - 2;
    } else {
      stop_.reset();
    }
  }

  std::optional<WalDamage> judge(const GroupMark& mark) const {
    if (stop_ && mark.synced_group > last_->group) return stop_;
    return std::nullopt;
  }

  std::optional<GroupMark> last_;  // the last group that the replay reaches
  std::optional<WalDamage> stop_;  // where it stops
};

}  // namespace

std::optional<WalDamage> check_wal(rocksdb::Env& env, const std::string& dir) {
  Judge judge;
  for (const auto& [number, path] : wal_files(env, dir)) {
    WalReader reader(env, path);
    bool at_file_start = true;
    while (const auto item = reader.next()) {
      if (auto damage = judge.see(path, *item, at_file_start)) return damage;
      if (!item->bad) at_file_start = false;
    }
  }
  return std::nullopt;
}

rocksdb::WalFilter::WalProcessingOption ReplayGuard::LogRecordFound(
    unsigned long long, const std::string&, const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
    bool*) {
  const auto mark = mark_of(batch.Data());
  if (!mark) return WalProcessingOption::kContinueProcessing;
  if (last_ && mark->epoch == last_->epoch && mark->group != last_->group + 1) {
    return WalProcessingOption::kStopReplay;
  }
  last_ = mark;
  return WalProcessingOption::kContinueProcessing;
}

}  // namespace stoat::store
