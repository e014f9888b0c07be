#include "store/flush_filter.hpp"

#include <gtest/gtest.h>

#include "store/key_layout.hpp"
#include "tests/store/rocks_fixture.hpp"

// What is settled does not reach a table, and what is not does.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;
using rocksdb::CompactionFilter;
using rocksdb::TableFileCreationReason;

class FlushFilterAlone : public ::testing::Test {
 protected:
  FlushFilterAlone() : streams_(std::make_shared<StreamTable>()), factory_(streams_) {
    streams_->add_queue(kStream.queue);
    stream_ = streams_->add_stream(kStream, Sequence{1});
    filter_ = factory_.CreateCompactionFilter({});
  }

  struct Answer {
    CompactionFilter::Decision decision;
    std::string skip_until;
  };
  Answer ask(std::string_view key) const {
    Answer answer;
    answer.decision =
        filter_->FilterV2(0, {key.data(), key.size()}, CompactionFilter::ValueType::kValue, "bytes",
                          nullptr, &answer.skip_until);
    return answer;
  }
  bool keeps(StreamId id, std::uint64_t sequence) const {
    return ask(message_key(id, Sequence{sequence}).view()).decision ==
           CompactionFilter::Decision::kKeep;
  }

  static constexpr StreamId kStream{QueueId{7}, 2};
  std::shared_ptr<StreamTable> streams_;
  FlushFilterFactory factory_;
  std::shared_ptr<StreamState> stream_;
  std::unique_ptr<CompactionFilter> filter_;
};

TEST_F(FlushFilterAlone, RunsAtFlushAndMergeButNotWhileTheLogIsReplayed) {
  EXPECT_TRUE(factory_.ShouldFilterTableFileCreation(TableFileCreationReason::kFlush));
  EXPECT_TRUE(factory_.ShouldFilterTableFileCreation(TableFileCreationReason::kCompaction));
  EXPECT_FALSE(factory_.ShouldFilterTableFileCreation(TableFileCreationReason::kRecovery));
  EXPECT_FALSE(factory_.ShouldFilterTableFileCreation(TableFileCreationReason::kMisc));
}

TEST_F(FlushFilterAlone, SkipsToTheNextKeyNotSettled) {
  stream_->publish(Sequence{1}, Sequence{9});
  stream_->publish(Sequence{12}, Sequence{9000});
  const auto answer = ask(message_key(kStream, Sequence{3}).view());
  EXPECT_EQ(answer.decision, CompactionFilter::Decision::kRemoveAndSkipUntil);
  EXPECT_EQ(answer.skip_until, message_key(kStream, Sequence{10}).view());
  EXPECT_TRUE(keeps(kStream, 10));
  EXPECT_TRUE(keeps(kStream, 11));
  EXPECT_EQ(ask(message_key(kStream, Sequence{12}).view()).skip_until,
            message_key(kStream, Sequence{9001}).view());
}

TEST_F(FlushFilterAlone, GoesByWhatIsSyncedAlone) {
  stream_->settle(Sequence{1}, Sequence{9});
  EXPECT_TRUE(keeps(kStream, 3));
}

TEST_F(FlushFilterAlone, KeepsWhatItDoesNotKnow) {
  EXPECT_TRUE(keeps({QueueId{6}, 2}, 1));
  EXPECT_TRUE(keeps({kStream.queue, 3}, 1));
  EXPECT_EQ(ask("no message's key").decision, CompactionFilter::Decision::kKeep);
}

TEST_F(FlushFilterAlone, SkipsAllOfADeletedQueue) {
  streams_->mark_deleted(kStream.queue);
  for (const int stream : {0, 2, 255}) {
    const auto answer =
        ask(message_key({kStream.queue, static_cast<std::uint8_t>(stream)}, Sequence{5}).view());
    EXPECT_EQ(answer.decision, CompactionFilter::Decision::kRemoveAndSkipUntil);
    EXPECT_EQ(answer.skip_until, message_key({QueueId{8}, 0}, Sequence{0}).view());
  }
  streams_->forget(kStream.queue);
  filter_ = factory_.CreateCompactionFilter({});
  EXPECT_TRUE(keeps(kStream, 5));
}

class FlushFilterInUse : public RocksFixture {};

TEST_F(FlushFilterInUse, ShortLivedMessagesReachNoTable) {
  constexpr std::uint64_t kMessages = 10'000;  // some fifty write buffers
  constexpr std::size_t kBytes = 200;
  open_with_queue();
  for (std::uint64_t first = 1; first <= kMessages; first += 10) {
    put_range(kStream, first, first + 9, kBytes);
    settle_range(kStream, first, first + 9, kBytes);
  }
  EXPECT_EQ(store_->stats().puts, kMessages) << "each was written to the log";
  close();
  const auto contents = tables("messages");
  // The ten that wait while their buffer is flushed may reach a table.
  EXPECT_LT(contents.entries, kMessages / 10);
  EXPECT_EQ(contents.deletions, 0u);
}

TEST_F(FlushFilterInUse, WhatIsAliveReachesTheTables) {
  open_with_queue();
  put_range(kStream, 1, 1000, 500);
  for (std::uint64_t sequence = 2; sequence <= 1000; sequence += 2) {
    settle_range(kStream, sequence, sequence, 500, false);
  }
  close();
  EXPECT_GE(tables("messages").entries, 500u);
  open();
  EXPECT_EQ(recovered(kStream).count, 500u);
  EXPECT_EQ(alive(*store_, kStream, 1001).size(), 500u);
}

// Submitted from a completion, so that both are in the next group.
TEST_F(FlushFilterInUse, APutThatIsSettledInItsGroupIsNeverWritten) {
  open_with_queue();
  const auto before = store_->stats();
  std::promise<void> done;
  Batch batch;
  batch.puts.push_back(put(kStream, 1, "alive"));
  batch.sync = true;
  store_->submit(std::move(batch), [&](const auto&) {
    Batch puts;
    puts.puts.push_back(put(kStream, 2, "short-lived"));
    puts.puts.push_back(put(kStream, 3, "short-lived"));
    puts.sync = true;
    store_->submit(std::move(puts), {});
    Batch acks;
    acks.settles.push_back(settle(kStream, 2, 3, 2, 22));
    store_->submit(std::move(acks), [&](const auto&) { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_EQ(store_->stats().puts, before.puts + 1);
  EXPECT_EQ(store_->stats().syncs, before.syncs + 1) << "nothing was left to promise";
  EXPECT_EQ(store_->stats().groups, before.groups + 2);
  kill();
  open();
  EXPECT_EQ(recovered(kStream).count, 1u);
  EXPECT_EQ(recovered(kStream).bytes, 5u);
  EXPECT_EQ(alive(*store_, kStream, 100), (std::vector<std::uint64_t>{1}));
}

TEST_F(FlushFilterInUse, APartlySettledBatchIsStillSynced) {
  open_with_queue();
  const auto before = store_->stats();
  std::promise<void> done;
  store_->submit({}, [&](const auto&) {
    Batch puts;
    puts.puts.push_back(put(kStream, 1, "alive"));
    puts.puts.push_back(put(kStream, 2, "short-lived"));
    puts.sync = true;
    store_->submit(std::move(puts), {});
    Batch acks;
    acks.settles.push_back(settle(kStream, 2, 2, 1, 11));
    store_->submit(std::move(acks), [&](const auto&) { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_EQ(store_->stats().puts, before.puts + 1);
  EXPECT_EQ(store_->stats().syncs, before.syncs + 1);
  cut_power();
  open();
  EXPECT_EQ(alive(*store_, kStream, 100), (std::vector<std::uint64_t>{1}));
}

}  // namespace
}  // namespace stoat::store
