#include "store/wal_check.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>
#include <vector>

#include "rocksdb/write_batch.h"
#include "store/open.hpp"
#include "store/wal_reader.hpp"

namespace stoat::store {
namespace {

constexpr std::string_view kWalSuffix = ".log";

// Follows the groups through the log and judges what comes behind the place where the replay will
// stop.
class Judge {
 public:
  explicit Judge(const std::vector<WalFile>& files) {
    for (const WalFile& file : files) present_.insert(file.number);
  }

  void begin_file(const std::string& path) {
    path_ = path;
    nothing_whole_yet_ = true;
    begins_badly_ = false;
  }

  std::optional<WalDamage> see(const WalReader::Item& item) {
    if (item.bad) {
      begins_badly_ |= nothing_whole_yet_;
      if (!stop_) stop_ = WalDamage{path_, item.offset};
      return std::nullopt;
    }
    // RocksDB's own entries, which it may begin a file with, prove nothing.
    if (!item.mark) return std::nullopt;
    const bool first = std::exchange(nothing_whole_yet_, false);
    const GroupMark& mark = *item.mark;
    const bool follows = last_ && mark.epoch == last_->epoch && mark.group == last_->group + 1;
    if (follows && !stop_) {
      last_ = mark;
    } else if (first && !begins_badly_ && !present_.contains(mark.previous_log)) {
      // What came before was no longer needed, or is what an earlier start has dealt with.
      last_ = mark;
      stop_.reset();
    } else {
      if (!stop_) stop_ = WalDamage{path_, item.offset};
      return judge(mark, first);
    }
    return std::nullopt;
  }

 private:
  std::optional<WalDamage> judge(const GroupMark& mark, bool first) {
    if (!last_ || mark.epoch != last_->epoch) {
      // Bytes in the midst of a file that look like an entry of another epoch are some message's.
      // At its beginning they are an epoch's of which at least the group before is lost.
      if (last_ && !first) return std::nullopt;
      last_ = mark;
      last_->group = mark.group < 2 ? 0 : mark.group - 2;
    }
    if (mark.synced_group > last_->group) return stop_;
    return std::nullopt;
  }

  std::set<std::uint64_t> present_;  // files
  std::string path_;                 // of the file at hand
  bool nothing_whole_yet_ = true;
  bool begins_badly_ = false;
  std::optional<GroupMark> last_;  // the last group that the replay reaches
  std::optional<WalDamage> stop_;  // where it stops
};

}  // namespace

std::vector<WalFile> wal_files(rocksdb::Env& env, const std::string& dir) {
  std::vector<std::string> names;
  const auto status = env.GetChildren(dir, &names);
  if (status.IsNotFound()) return {};
  if (!status.ok()) throw StoreOpenError("cannot read " + dir + ": " + status.ToString());
  std::vector<WalFile> files;
  for (const auto& name : names) {
    if (!name.ends_with(kWalSuffix)) continue;
    const char* const digits_end = name.data() + name.size() - kWalSuffix.size();
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(name.data(), digits_end, number);
    if (parsed.ec == std::errc() && parsed.ptr == digits_end) {
      files.push_back({number, dir + "/" + name});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const WalFile& a, const WalFile& b) { return a.number < b.number; });
  return files;
}

std::optional<WalDamage> check_wal(rocksdb::Env& env, const std::string& dir) {
  const std::vector<WalFile> files = wal_files(env, dir);
  Judge judge(files);
  for (const WalFile& file : files) {
    judge.begin_file(file.path);
    WalReader reader(env, file.path);
    while (const auto item = reader.next()) {
      if (auto damage = judge.see(*item)) return damage;
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
