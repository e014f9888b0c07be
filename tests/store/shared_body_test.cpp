#include "store/shared_body.hpp"

#include <gtest/gtest.h>

#include "rocksdb/db.h"
#include "store/body_filter.hpp"
#include "store/folder_check.hpp"
#include "store/group_builder.hpp"
#include "tests/store/rocks_fixture.hpp"

// A large message in several queues is on the disk once, as long as one of them has it.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;
using rocksdb::CompactionFilter;

TEST(SharedBody, ReadsBackItsUsersAndBytes) {
  const std::vector<BodyUser> users = {{{QueueId{1}, 2}, Sequence{3}},
                                       {{QueueId{1ull << 40}, 0}, Sequence{1ull << 50}}};
  std::string value;
  encode_users(users, &value);
  value += "the bytes";
  const auto body = BodyView::parse(value);
  ASSERT_TRUE(body);
  ASSERT_EQ(body->user_count(), users.size());
  for (std::size_t i = 0; i < users.size(); ++i) {
    EXPECT_EQ(body->user(i).stream, users[i].stream);
    EXPECT_EQ(body->user(i).sequence, users[i].sequence);
  }
  EXPECT_EQ(body->bytes(), "the bytes");
}

TEST(SharedBody, BytesThatAreNoneAreRefused) {
  std::string value;
  encode_users(std::vector<BodyUser>(3), &value);
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(BodyView::parse(std::string_view(value).substr(0, size))) << size;
  }
  EXPECT_FALSE(BodyView::parse("\xff\xff\xff\xff and no users"));
  EXPECT_FALSE(decode_reference("short"));
}

class BodyFilterAlone : public ::testing::Test {
 protected:
  BodyFilterAlone() {
    for (std::uint64_t queue : {1, 2}) {
      streams_->add_queue(QueueId{queue});
      streams_->add_stream({QueueId{queue}, 0}, Sequence{1});
    }
  }
  void publish(std::uint64_t queue, std::uint64_t sequence) {
    streams_->find({QueueId{queue}, 0}).stream->publish(Sequence{sequence}, Sequence{sequence});
  }
  // Of the body 5, used by sequence 10 of queue 1 and 20 of queue 2.
  bool keeps() {
    std::string value;
    encode_users(
        std::vector<BodyUser>{{{QueueId{1}, 0}, Sequence{10}}, {{QueueId{2}, 0}, Sequence{20}}},
        &value);
    value += "bytes";
    const auto key = body_key(BodyId{5});
    std::string skip_until;
    const auto decision = BodyFilterFactory(streams_).CreateCompactionFilter({})->FilterV2(
        0, {key.bytes.data(), key.bytes.size()}, CompactionFilter::ValueType::kValue, value,
        nullptr, &skip_until);
    if (decision == CompactionFilter::Decision::kKeep) return true;
    EXPECT_EQ(decision, CompactionFilter::Decision::kRemoveAndSkipUntil);
    EXPECT_EQ(skip_until, body_key(BodyId{6}).view());
    return false;
  }

  std::shared_ptr<StreamTable> streams_ = std::make_shared<StreamTable>();
};

TEST_F(BodyFilterAlone, DropsItOnceAllUsersAreSettled) {
  streams_->set_complete();
  EXPECT_TRUE(keeps());
  publish(1, 10);
  EXPECT_TRUE(keeps());
  publish(2, 20);
  EXPECT_FALSE(keeps());
}

TEST_F(BodyFilterAlone, GoesByWhatIsSyncedAlone) {
  streams_->set_complete();
  publish(1, 10);
  streams_->find({QueueId{2}, 0}).stream->settle(Sequence{20}, Sequence{20});
  EXPECT_TRUE(keeps());
}

TEST_F(BodyFilterAlone, ADeletedQueueUsesNothingAlsoWhenItIsForgotten) {
  streams_->set_complete();
  publish(1, 10);
  streams_->mark_deleted(QueueId{2});
  EXPECT_FALSE(keeps());
  streams_->forget(QueueId{2});
  EXPECT_FALSE(keeps());
}

TEST_F(BodyFilterAlone, BeforeRecoveryIsDoneItKeepsEverything) {
  streams_->mark_deleted(QueueId{1});
  streams_->forget(QueueId{1});
  publish(2, 20);
  EXPECT_TRUE(keeps());
  streams_->set_complete();
  EXPECT_FALSE(keeps());
}

class SharedBodies : public RocksFixture {
 protected:
  static constexpr std::uint64_t kQueues = 10;
  static constexpr std::size_t kBytes = 16u << 10;

  static StreamId stream(std::uint64_t index) { return {QueueId{100 + index}, 0}; }

  void open_with_queues() {
    open();
    for (std::uint64_t i = 0; i < kQueues; ++i) {
      ASSERT_FALSE(commit(*store_, created(stream(i).queue)));
    }
  }
  static std::string body(std::uint64_t sequence) {
    return std::string(kBytes, static_cast<char>('a' + sequence % 26));
  }
  // One message in every queue.
  void fan_out(std::uint64_t sequence) {
    const std::string bytes = body(sequence);
    Batch batch;
    batch.sync = true;
    for (std::uint64_t i = 0; i < kQueues; ++i) {
      batch.puts.push_back(put(stream(i), sequence, bytes));
    }
    ASSERT_FALSE(commit(*store_, std::move(batch)));
  }
  void fan_out(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t sequence = first; sequence <= last; ++sequence) fan_out(sequence);
  }
  void expect_alive(std::uint64_t queue, std::uint64_t first, std::uint64_t last) {
    for (Sequence at{first}; at <= Sequence{last};) {
      const auto result = read(*store_, stream(queue), at.value, {Sequence{last + 1}});
      ASSERT_FALSE(result.error) << result.error->text;
      ASSERT_FALSE(result.messages.empty()) << at;
      for (const auto& message : result.messages) {
        ASSERT_EQ(message.sequence, at);
        ASSERT_EQ(message.bytes, body(at.value));
        at = at.next();
      }
    }
  }
};

TEST_F(SharedBodies, AreWrittenOnce) {
  open_with_queues();
  const auto before = store_->stats();
  const auto log_before = files_->bytes_ending_in(".log");
  fan_out(1);
  const auto after = store_->stats();
  EXPECT_EQ(after.puts - before.puts, kQueues);
  EXPECT_EQ(after.put_bytes - before.put_bytes, kBytes);
  EXPECT_LE(files_->bytes_ending_in(".log") - log_before, kBytes * 12 / 10);
}

TEST_F(SharedBodies, SmallOnesAreCopied) {
  open_with_queues();
  const std::string bytes(GroupBuilder::kMaxUnsharedBytes, 's');
  Batch batch;
  batch.puts.push_back(put(stream(0), 1, bytes));
  batch.puts.push_back(put(stream(1), 1, bytes));
  batch.sync = true;
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  close();
  EXPECT_EQ(tables("bodies").entries, 0u);
  EXPECT_EQ(tables("messages").bytes > 2 * bytes.size(), true);
}

TEST_F(SharedBodies, AreThereInEveryQueueAfterEveryKindOfStop) {
  open_with_queues();
  fan_out(1, 20);
  for (std::uint64_t i = 0; i < kQueues; ++i) expect_alive(i, 1, 20);
  kill();
  open();
  for (std::uint64_t i = 0; i < kQueues; ++i) expect_alive(i, 1, 20);
  fan_out(21, 25);
  cut_power();
  open();
  for (std::uint64_t i = 0; i < kQueues; ++i) expect_alive(i, 1, 25);
  EXPECT_EQ(recovered(stream(3)).count, 25u);
  EXPECT_EQ(recovered(stream(3)).bytes, 25 * kBytes);
  close();
  open();
  fan_out(26, 30);
  for (std::uint64_t i = 0; i < kQueues; ++i) expect_alive(i, 1, 30);
}

TEST_F(SharedBodies, StayForTheLastWhoHasThem) {
  open_with_queues();
  fan_out(1, 40);
  for (std::uint64_t i = 1; i < kQueues; ++i) settle_range(stream(i), 1, 40, kBytes);
  settle_range(stream(0), 1, 30, kBytes);
  close();
  EXPECT_GE(tables("bodies").entries, 10u);
  open();
  expect_alive(0, 31, 40);
  EXPECT_TRUE(alive(*store_, stream(1), 100).empty());
}

TEST_F(SharedBodies, ShortLivedOnesReachNoTable) {
  open_with_queues();
  for (std::uint64_t sequence = 1; sequence <= 200; ++sequence) {
    fan_out(sequence);
    for (std::uint64_t i = 0; i < kQueues; ++i) {
      settle_range(stream(i), sequence, sequence, kBytes, i + 1 == kQueues);
    }
  }
  close();
  EXPECT_LT(tables("bodies").entries, 20u);
  EXPECT_EQ(tables("bodies").deletions, 0u);
}

// The queues are forgotten before the bodies' tables are next written.
TEST_F(SharedBodies, GoWithTheirQueues) {
  open_with_queues();
  fan_out(1, 3);
  for (std::uint64_t i = 0; i < kQueues; ++i) {
    ASSERT_FALSE(commit(*store_, deleted(stream(i).queue)));
  }
  close();
  EXPECT_EQ(tables("bodies").entries, 0u);
}

TEST_F(SharedBodies, PutsSettledInTheirGroupDoNotCount) {
  open_with_queues();
  std::promise<void> done;
  const std::string bytes = body(1);
  store_->submit({}, [&](const auto&) {
    Batch puts;
    for (std::uint64_t i = 0; i < 3; ++i) puts.puts.push_back(put(stream(i), 1, bytes));
    puts.sync = true;
    store_->submit(std::move(puts), {});
    Batch acks;
    acks.settles.push_back(settle(stream(0), 1, 1, 1, kBytes));
    acks.settles.push_back(settle(stream(1), 1, 1, 1, kBytes));
    store_->submit(std::move(acks), [&](const auto&) { done.set_value(); });
  });
  done.get_future().wait();
  close();
  EXPECT_EQ(tables("bodies").entries, 0u) << "one user is no sharing";
  open();
  expect_alive(2, 1, 1);
}

TEST_F(SharedBodies, AMissingOneIsSaidAndNotPassedOver) {
  open_with_queues();
  fan_out(1, 3);
  close();
  {
    rocksdb::DBOptions options;
    options.env = env_.get();
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options, kDatabaseDir, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, kDatabaseDir, families, &handles, &db).ok());
    for (auto* handle : handles) {
      if (handle->GetName() != "bodies") continue;
      const auto key = body_key(BodyId{2});
      ASSERT_TRUE(db->Delete({}, handle, {key.bytes.data(), key.bytes.size()}).ok());
    }
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
  }
  open();
  const auto result = read(*store_, stream(4), 2, {Sequence{10}});
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->text.find("a body is missing"), std::string::npos) << result.error->text;
}

TEST_F(SharedBodies, ASalvageKeepsThoseThatCanBeReadForAllWhoHaveThem) {
  constexpr std::uint64_t kMessages = 40;
  open_with_queues();
  fan_out(1, kMessages);
  kill();
  open();
  close();
  EXPECT_TRUE(check_folder(options_, "/scratch", {}).damage.empty());
  for (const auto& told : check_folder(options_, "/scratch", {}).streams) {
    EXPECT_EQ(told.readable, kMessages);
    EXPECT_EQ(told.bytes, kMessages * kBytes);
  }

  const std::string table = kDatabaseDir + table_names("bodies").at(0);
  std::string bytes = files_->contents(table);
  bytes.at(bytes.size() / 3) ^= 0x55;
  files_->set_contents(table, bytes);
  const FolderReport report = check_folder(options_, "/scratch", {});
  ASSERT_FALSE(report.damage.empty());
  EXPECT_EQ(report.damage[0].file, table);

  options_.salvage = true;
  open();
  options_.salvage = false;
  kill();
  open();
  const auto left = alive(*store_, stream(0), kMessages + 1);
  EXPECT_LT(left.size(), kMessages);
  EXPECT_GE(left.size(), kMessages - 4) << "one block holds two or three of them";
  for (std::uint64_t i = 0; i < kQueues; ++i) {
    EXPECT_EQ(alive(*store_, stream(i), kMessages + 1), left);
    EXPECT_EQ(recovered(stream(i)).count, left.size());
    EXPECT_EQ(recovered(stream(i)).bytes, left.size() * kBytes);
  }
  close();
  EXPECT_TRUE(check_folder(options_, "/scratch", {}).damage.empty());
}

}  // namespace
}  // namespace stoat::store
