#include "store/wal_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "store/crc32c.hpp"
#include "store/wal_reader.hpp"
#include "tests/store/rocks_fixture.hpp"

// Damage to what was synced is told from the torn end a power cut leaves.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

TEST(Crc32c, GivesTheKnownValue) {
  EXPECT_EQ(crc32c(0, "123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c_from_table(0, "123456789"), 0xE3069283u);
}

TEST(Crc32c, GoesOnFromWhatWentBefore) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes.push_back(static_cast<char>(i * 37));
    const auto at = bytes.size() / 3;
    const std::string_view all = bytes;
    EXPECT_EQ(crc32c(crc32c(0, all.substr(0, at)), all.substr(at)), crc32c_from_table(0, all));
  }
}

class WalCheck : public RocksFixture {
 protected:
  static constexpr std::uint64_t kMessages = 120;
  static constexpr std::size_t kBytes = 300;

  // One log file with a group for each message, each synced, then a kill.
  void write_log() {
    options_.write_buffer_bytes = 4 << 20;
    open_with_queue();
    for (std::uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
      const std::string bytes(kBytes, 'm');
      Batch batch;
      batch.puts.push_back(put(kStream, sequence, bytes));
      batch.sync = true;
      ASSERT_FALSE(commit(*store_, std::move(batch)));
    }
    kill();
    const auto logs = files_->files_ending_in(".log");
    ASSERT_EQ(logs.size(), 1u);
    log_ = logs.front();
    good_ = files_->contents(log_);
    WalReader reader(*env_, log_);
    while (const auto item = reader.next()) {
      ASSERT_FALSE(item->bad);
      ASSERT_TRUE(item->mark);
      entries_.push_back(item->offset);
    }
    ASSERT_EQ(entries_.size(), kMessages + 2) << "the start and the queue come before";
  }

  std::string refusal() {
    try {
      open();
      return "";
    } catch (const StoreOpenError& error) {
      return error.what();
    }
  }

  void expect_refused(std::uint64_t first_bad) {
    const std::string text = refusal();
    EXPECT_NE(text.find(log_ + " at byte " + std::to_string(first_bad) + " "), std::string::npos)
        << text << " instead of " << first_bad;
    EXPECT_NE(text.find("--salvage"), std::string::npos);
  }

  std::string log_;
  std::string good_;
  std::vector<std::uint64_t> entries_;  // their offsets
};

TEST_F(WalCheck, AGoodLogIsTaken) {
  write_log();
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(recovered(kStream).count, kMessages);
}

TEST_F(WalCheck, OneDamagedByteAnywhereIsRefusedButInTheLastEntry) {
  write_log();
  std::size_t entry = 0;
  for (std::uint64_t at = 0; at < good_.size(); at += 61) {
    while (entry + 1 < entries_.size() && entries_[entry + 1] <= at) ++entry;
    std::string damaged = good_;
    damaged[at] ^= 0x10;
    files_->set_contents(log_, damaged);
    const auto damage = check_wal(*env_, kDatabaseDir);
    if (entry + 1 == entries_.size()) {
      EXPECT_FALSE(damage) << "like a torn end: " << at;
    } else {
      ASSERT_TRUE(damage) << at;
      EXPECT_EQ(damage->file, log_);
      EXPECT_EQ(damage->offset, entries_[entry]) << at;
    }
  }
}

TEST_F(WalCheck, DamageIsRefusedAndNothingTouched) {
  write_log();
  std::string damaged = good_;
  damaged.replace(entries_[50] + 100, 8, "damaged!");
  files_->set_contents(log_, damaged);
  expect_refused(entries_[50]);
  EXPECT_EQ(files_->contents(log_), damaged);
  expect_refused(entries_[50]);
  files_->set_contents(log_, good_);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(recovered(kStream).count, kMessages);
}

TEST_F(WalCheck, SalvageTakesWhatIsLeftAndCountsIt) {
  write_log();
  std::string damaged = good_;
  damaged.replace(entries_[50] + 100, 8, "damaged!");  // the message with sequence 49
  files_->set_contents(log_, damaged);
  options_.salvage = true;
  ASSERT_EQ(refusal(), "");
  // RocksDB goes on with the block after the damaged one: some neighbours are lost as well.
  const auto present = alive(*store_, kStream, kMessages + 1);
  EXPECT_EQ(std::count(present.begin(), present.end(), 48u), 1);
  EXPECT_EQ(std::count(present.begin(), present.end(), 49u), 0);
  EXPECT_EQ(std::count(present.begin(), present.end(), kMessages), 1);
  EXPECT_EQ(recovered(kStream).count, present.size());
  EXPECT_EQ(recovered(kStream).bytes, present.size() * kBytes);
  close();
  options_.salvage = false;
  EXPECT_EQ(refusal(), "") << "what was salvaged is whole again";
  EXPECT_EQ(recovered(kStream).count, present.size());
}

TEST_F(WalCheck, ALogCutShortAnywhereIsATornEnd) {
  write_log();
  for (std::uint64_t size = 0; size < good_.size(); size += 997) {
    files_->set_contents(log_, good_.substr(0, size));
    EXPECT_FALSE(check_wal(*env_, kDatabaseDir)) << size;
  }
}

TEST_F(WalCheck, AnEntryCutOutIsDamage) {
  write_log();
  std::string damaged = good_;
  // Inside one block, so that what follows is still read where it lies.
  damaged.erase(entries_[10], entries_[11] - entries_[10]);
  files_->set_contents(log_, damaged);
  EXPECT_TRUE(check_wal(*env_, kDatabaseDir));
}

TEST_F(WalCheck, ALostPageOfUnsyncedGroupsIsATornEnd) {
  write_log();
  open();
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    settle_range(kStream, sequence, sequence, kBytes, /*sync=*/false);
  }
  kill();
  const auto logs = files_->files_ending_in(".log");
  log_ = logs.back();
  std::string torn = files_->contents(log_);
  ASSERT_GT(torn.size(), 9000u);
  torn.replace(4096, 512, std::string(512, '\0'));
  files_->set_contents(log_, torn);
  EXPECT_EQ(refusal(), "");
  const auto present = alive(*store_, kStream, kMessages + 1);
  EXPECT_GT(present.size(), kMessages - 100) << "the settling behind the lost page is lost as well";
  EXPECT_EQ(recovered(kStream).count, present.size());
}

// A message may be a copy of a log. Torn, its bytes must not pass for entries behind a bad one.
TEST_F(WalCheck, AMessageThatLooksLikeALogProvesNothing) {
  write_log();
  open();
  Batch batch;
  batch.puts.push_back(put(kStream, kMessages + 1, good_));
  ASSERT_FALSE(commit(*store_, std::move(batch)));  // not synced
  kill();
  log_ = files_->files_ending_in(".log").back();
  std::string torn = files_->contents(log_);
  ASSERT_GT(torn.size(), good_.size());
  torn.resize(torn.size() - 1000);
  torn[200] ^= 1;
  files_->set_contents(log_, torn);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(recovered(kStream).count, kMessages);
}

// Two log files, of which the first has lost its unsynced end: the second's groups must not be
// applied without those before them.
TEST_F(WalCheck, AGapBetweenFilesStopsTheReplay) {
  open_with_queue();
  put_range(kStream, 1, 5, 1000);
  // No table is made, so that the first file is still needed when the second is being written.
  files_->set_fault([](ForgetfulFileSystem::Operation operation, const std::string& name) {
    if (operation != ForgetfulFileSystem::Operation::create || !name.ends_with(".sst")) {
      return rocksdb::IOStatus::OK();
    }
    return rocksdb::IOStatus::IOError("no table today");
  });
  std::uint64_t sequence = 6;
  while (files_->files_ending_in(".log").size() < 2 && sequence < 500) {
    const std::string bytes(1000, 'm');
    Batch batch;
    batch.puts.push_back(put(kStream, sequence++, bytes));
    store_->submit(std::move(batch), {});
    if (commit(*store_, Batch{})) break;
  }
  kill();
  files_->set_fault({});
  const auto logs = files_->files_ending_in(".log");
  ASSERT_EQ(logs.size(), 2u);
  ASSERT_GT(files_->contents(logs[1]).size(), 1000u) << "nothing in the second file";
  WalReader reader(*env_, logs[0]);
  std::uint64_t last_entry = 0;
  while (const auto item = reader.next()) last_entry = item->offset;
  files_->set_contents(logs[0], files_->contents(logs[0]).substr(0, last_entry));

  EXPECT_EQ(refusal(), "");
  const auto present = alive(*store_, kStream, 1000);
  EXPECT_EQ(recovered(kStream).count, present.size());
  EXPECT_LT(present.size(), sequence - 2);
}

}  // namespace
}  // namespace stoat::store
