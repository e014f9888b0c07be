#include <gtest/gtest.h>

#include "tests/store/rocks_fixture.hpp"

// What is found after a stop of any kind.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

class Restart : public RocksFixture {};

QueueNumbers numbers(StreamId stream, std::uint64_t next, std::uint64_t ceiling) {
  return {stream, Sequence{next}, Sequence{ceiling}};
}

TEST_F(Restart, AfterACleanStopEverythingIsExact) {
  open_with_queue();
  put_range(kStream, 1, 20, 100);
  settle_range(kStream, 1, 5, 100);
  settle_range(kStream, 8, 8, 100);
  Batch ahead;
  ahead.numbers.push_back(numbers(kStream, 1000, 500));
  ASSERT_FALSE(commit(*store_, std::move(ahead)));
  close({numbers(kStream, 21, 12)});

  open();
  EXPECT_TRUE(recovered_.clean);
  EXPECT_EQ(recovered_.next_queue_id, QueueId{8});
  ASSERT_EQ(recovered_.streams.size(), 1u);
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{6});
  EXPECT_EQ(recovered(kStream).next, Sequence{21});
  EXPECT_EQ(recovered(kStream).delivered_ceiling, Sequence{12});
  EXPECT_EQ(recovered(kStream).count, 14u);
  EXPECT_EQ(recovered(kStream).bytes, 1400u);
  EXPECT_EQ(alive(*store_, kStream, 100),
            (std::vector<std::uint64_t>{6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
}

TEST_F(Restart, AfterAKillNumbersAreThosePersistedAhead) {
  open_with_queue();
  Batch ahead;
  ahead.numbers.push_back(numbers(kStream, 1000, 500));
  ahead.sync = true;
  ASSERT_FALSE(commit(*store_, std::move(ahead)));
  put_range(kStream, 1, 3, 10);
  kill();

  open();
  EXPECT_FALSE(recovered_.clean);
  EXPECT_EQ(recovered(kStream).next, Sequence{1000});
  EXPECT_EQ(recovered(kStream).delivered_ceiling, Sequence{500});
  EXPECT_EQ(recovered(kStream).count, 3u);
}

TEST_F(Restart, AStartWithoutAStopIsNotClean) {
  open();
  close();
  open();
  EXPECT_TRUE(recovered_.clean);
  kill();
  open();
  EXPECT_FALSE(recovered_.clean);
}

TEST_F(Restart, NumbersOnlyGrowWhileOpen) {
  open_with_queue();
  for (const auto& [next, ceiling] : {std::pair{100u, 50u}, {10u, 60u}, {0u, 0u}}) {
    Batch batch;
    batch.numbers.push_back(numbers(kStream, next, ceiling));
    ASSERT_FALSE(commit(*store_, std::move(batch)));
  }
  kill();
  open();
  EXPECT_EQ(recovered(kStream).next, Sequence{100});
  EXPECT_EQ(recovered(kStream).delivered_ceiling, Sequence{60});
}

TEST_F(Restart, NextIsAboveEveryKeyAndMark) {
  open_with_queue();
  put_range(kStream, 50, 50, 10);
  put_range({kQueue, 1}, 9, 9, 10);
  settle_range({kQueue, 1}, 9, 9, 10);
  kill();
  open();
  EXPECT_EQ(recovered(kStream).next, Sequence{51});
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{50}) << "what was never put is settled";
  EXPECT_EQ(recovered({kQueue, 1}).next, Sequence{10});
  EXPECT_EQ(recovered({kQueue, 1}).first_unsettled, Sequence{10});
  EXPECT_EQ(recovered({kQueue, 1}).count, 0u);
}

TEST_F(Restart, TopologyIsAsLastSaved) {
  open();
  TopologyChange change;
  change.puts = {{"vhost//", "{}"}, {"queue///a", R"({"durable":true})"}, {"queue///b", "{}"}};
  ASSERT_FALSE(commit(*store_, change));
  change = {};
  change.puts = {{"queue///a", "{}"}};
  change.erases = {"queue///b", "never there"};
  ASSERT_FALSE(commit(*store_, change));
  cut_power();
  open();
  EXPECT_EQ(recovered_.topology, (std::vector<std::pair<std::string, std::string>>{
                                     {"queue///a", "{}"}, {"vhost//", "{}"}}));
}

TEST_F(Restart, ACreatedQueueHasItsFirstStream) {
  open_with_queue();
  cut_power();
  open();
  ASSERT_EQ(recovered_.streams.size(), 1u);
  EXPECT_EQ(recovered(kStream).next, Sequence{1});
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{1});
  EXPECT_EQ(recovered(kStream).count, 0u);
}

TEST_F(Restart, QueueIdsAreNeverUsedAgain) {
  open();
  ASSERT_FALSE(commit(*store_, created(QueueId{41})));
  ASSERT_FALSE(commit(*store_, deleted(QueueId{41})));
  close();
  open();
  EXPECT_EQ(recovered_.next_queue_id, QueueId{42});
  EXPECT_TRUE(recovered_.streams.empty());
  close();
  open();
  EXPECT_EQ(recovered_.next_queue_id, QueueId{42});
}

TEST_F(Restart, TransientMessagesAreGone) {
  open_with_queue();
  Batch batch;
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    batch.puts.push_back(sequence % 2 == 0 ? put(kStream, sequence, "durable")
                                           : put_transient(kStream, sequence, "transient"));
  }
  batch.sync = true;
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  ASSERT_EQ(alive(*store_, kStream, 100).size(), 6u);
  kill();
  open();
  EXPECT_EQ(recovered(kStream).count, 3u);
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{2});
  EXPECT_EQ(alive(*store_, kStream, 100), (std::vector<std::uint64_t>{2, 4, 6}));
}

TEST_F(Restart, ATransientQueueLeavesNothing) {
  open();
  Batch batch;
  batch.puts.push_back(put_transient(kStream, 1, "transient"));
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  close();
  EXPECT_EQ(queue_keys(), 0u);
  open();
  EXPECT_TRUE(recovered_.streams.empty());
}

// A transient message that was never settled would hold back the watermark for ever.
TEST_F(Restart, GapsLeftByTransientMessagesCloseOnceRead) {
  open_with_queue();
  Batch batch;
  for (std::uint64_t sequence = 1; sequence <= 9; ++sequence) {
    batch.puts.push_back(sequence == 5 ? put_transient(kStream, sequence, "transient")
                                       : put(kStream, sequence, "durable"));
  }
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  kill();
  open();
  ASSERT_EQ(alive(*store_, kStream, 100).size(), 8u);
  settle_range(kStream, 1, 4, 7);
  settle_range(kStream, 6, 9, 7);
  close();
  EXPECT_EQ(queue_keys(), 2u) << "everything lies below the watermark: no chunk";
  open();
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{10});
  EXPECT_EQ(recovered(kStream).count, 0u);
}

TEST_F(Restart, AcksOutOfOrderSurvive) {
  open_with_queue();
  constexpr std::uint64_t kMessages = 9000;  // three chunks
  put_range(kStream, 1, kMessages, 10);
  Batch acks;
  acks.sync = true;
  std::vector<std::uint64_t> left;
  for (std::uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
    if (sequence % 7 == 0 || sequence == 1) {
      left.push_back(sequence);
    } else {
      acks.settles.push_back(settle(kStream, sequence, sequence, 1, 10));
    }
  }
  ASSERT_FALSE(commit(*store_, std::move(acks)));
  cut_power();
  open();
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{1});
  EXPECT_EQ(recovered(kStream).count, left.size());
  EXPECT_EQ(alive(*store_, kStream, kMessages + 1), left);

  // The chunks go again once the watermark has passed them.
  settle_range(kStream, 1, 1, 10);
  for (std::size_t i = 1; i < left.size(); ++i) settle_range(kStream, left[i], left[i], 10, false);
  close();
  EXPECT_EQ(queue_keys(), 2u) << "the queue and its one record";
  open();
  EXPECT_EQ(recovered(kStream).first_unsettled, Sequence{kMessages + 1});
}

TEST_F(Restart, WhatOnlySettledIsWrittenWithoutASyncAndSurvivesAKill) {
  open_with_queue();
  put_range(kStream, 1, 3, 10);
  const auto syncs = store_->stats().syncs;
  settle_range(kStream, 1, 1, 10, false);
  EXPECT_EQ(store_->stats().syncs, syncs);
  kill();
  open();
  EXPECT_EQ(alive(*store_, kStream, 10), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(recovered(kStream).count, 2u);
}

TEST_F(Restart, DestroyedWithoutCloseItAnswersWhatWaits) {
  open_with_queue();
  int answered = 0;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    Batch batch;
    batch.puts.push_back(put(kStream, sequence, "x"));
    batch.sync = true;
    store_->submit(std::move(batch), [&](const auto&) { ++answered; });
  }
  kill();
  EXPECT_EQ(answered, 100);
}

}  // namespace
}  // namespace stoat::store
