#include "broker/persister.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "home_driver.hpp"

namespace stoat::broker {
namespace {

using Texts = std::vector<std::string>;

constexpr ConnectionId kPublisher{10};
constexpr ChannelRef kChannel{ChannelNumber(1), ChannelIncarnation(1)};
constexpr store::StreamId kStream{QueueId(1), 0};

class PersisterTest : public ::testing::Test {
 protected:
  PersisterTest() { outboxes.open(kPublisher, WorkerIndex(0)); }

  PutNumber put(std::uint64_t sequence, std::uint64_t tag = 0, bool transient = false) {
    Persister::ConfirmSlot slot = Persister::kNoConfirm;
    if (tag != 0) slot = persister.open_confirm(kPublisher, kChannel, PublishTag(tag));
    const auto number =
        persister.put(kStream, Sequence(sequence), testing::make_message("abc", true), transient,
                      kPublisher, slot);
    persister.seal_if_full();
    return number;
  }
  void settle(std::uint64_t first, std::uint64_t last, bool stored) {
    persister.settle(cursor, kStream, Sequence(first), Sequence(last),
                     stored ? last - first + 1 : 0, 0, stored);
  }
  void complete() {
    ASSERT_FALSE(in_flight.empty());
    persister.completed(in_flight.front(), false);
    in_flight.erase(in_flight.begin());
  }
  // What came out for the publisher since the last call.
  Texts confirms() {
    Texts all;
    outboxes.flush([&](ConnectionId, WorkerIndex, ToConnection& batch) {
      for (const Confirm& c : batch.confirms) {
        all.push_back(std::to_string(c.first.value) + "-" + std::to_string(c.last.value));
      }
      taken_bytes += batch.taken_bytes;
    });
    return all;
  }
  static Texts ranges(const store::Batch& batch) {
    Texts all;
    for (const store::Settle& s : batch.settles) {
      all.push_back(std::to_string(s.stream.queue.value) + ":" + std::to_string(s.first.value) +
                    "-" + std::to_string(s.last.value) + "/" + std::to_string(s.count));
    }
    return all;
  }

  HomeLimits limits;
  Outboxes outboxes{limits.delivery_window_bytes};
  std::vector<store::Batch> batches;
  std::vector<Persister::BatchNumber> in_flight;
  Persister persister{outboxes, limits, [this](Persister::BatchNumber number, store::Batch batch) {
                        in_flight.push_back(number);
                        batches.push_back(std::move(batch));
                      }};
  Persister::Cursor cursor;
  std::uint64_t taken_bytes = 0;
};

TEST_F(PersisterTest, CollectsWhileABatchIsInFlight) {
  put(1, 1);
  persister.submit_if_idle();
  put(2, 2);
  put(3, 3);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  complete();
  EXPECT_EQ(confirms(), Texts{"1-1"});
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].puts.size(), 2u);
  EXPECT_TRUE(batches[1].sync);
  complete();
  EXPECT_EQ(confirms(), Texts{"2-3"});
  EXPECT_EQ(taken_bytes, 3 * testing::make_message("abc", true)->stored().size());
  EXPECT_TRUE(persister.idle());
}

TEST_F(PersisterTest, NumbersTellWaitingFromFlyingFromCommitted) {
  const PutNumber first = put(1);
  EXPECT_FALSE(persister.submitted(first));
  EXPECT_EQ(persister.body(first)->body(), "abc");
  persister.submit_if_idle();
  const PutNumber second = put(2);
  EXPECT_TRUE(persister.submitted(first));
  EXPECT_FALSE(persister.committed(first));
  EXPECT_EQ(persister.body(first)->body(), "abc");
  EXPECT_FALSE(persister.drop(first));
  EXPECT_FALSE(persister.submitted(second));
  complete();
  EXPECT_TRUE(persister.committed(first));
  EXPECT_FALSE(persister.committed(second));
  EXPECT_TRUE(persister.committed(kOnDisk));
  EXPECT_FALSE(persister.committed(kOnlyInMemory));
}

TEST_F(PersisterTest, DroppedPutIsAnsweredAtOnceAndNeverWritten) {
  const PutNumber only = put(1, 1);
  EXPECT_TRUE(persister.drop(only));
  EXPECT_EQ(confirms(), Texts{"1-1"});
  persister.submit_if_idle();
  EXPECT_TRUE(batches.empty());
  EXPECT_TRUE(persister.idle());
  put(2, 2);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].puts.at(0).sequence, Sequence(2));
  EXPECT_EQ(persister.puts_dropped(), 1u);
  EXPECT_EQ(persister.puts_written(), 1u);
}

TEST_F(PersisterTest, TagOfSeveralPutsIsAnsweredWithTheLast) {
  const auto slot = persister.open_confirm(kPublisher, kChannel, PublishTag(5));
  std::vector<PutNumber> numbers;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    numbers.push_back(persister.put({QueueId(i), 0}, Sequence(1),
                                    testing::make_message("abc", true), false, kPublisher, slot));
  }
  persister.drop(numbers[0]);
  persister.drop(numbers[2]);
  EXPECT_EQ(confirms(), Texts{});
  persister.submit_if_idle();
  complete();
  EXPECT_EQ(confirms(), Texts{"5-5"});
}

TEST_F(PersisterTest, SettlesAloneNeedNoSyncAndMergeIntoRanges) {
  settle(5, 6, true);
  settle(7, 7, true);
  settle(1, 3, false);
  settle(4, 4, true);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_FALSE(batches[0].sync);
  EXPECT_EQ(ranges(batches[0]), Texts{"1:1-7/4"});
}

TEST_F(PersisterTest, RangesOfWhatWasNeverWrittenRideAlong) {
  settle(1, 3, false);
  persister.submit_if_idle();
  EXPECT_TRUE(batches.empty());
  EXPECT_TRUE(persister.idle());
  put(4);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(ranges(batches[0]), Texts{"1:1-3/0"});
}

TEST_F(PersisterTest, TooManyWaitingRangesAreWrittenAlone) {
  limits.max_waiting_ranges = 4;
  for (std::uint64_t i = 1; i <= 8; i += 2) settle(i, i, false);
  persister.submit_if_idle();
  EXPECT_TRUE(batches.empty());
  settle(9, 9, false);
  persister.submit_if_idle();
  EXPECT_EQ(batches.size(), 1u);
}

TEST_F(PersisterTest, RangesOfSeveralQueuesStayApart) {
  Persister::Cursor other;
  settle(1, 1, true);
  persister.settle(other, {QueueId(2), 0}, Sequence(2), Sequence(2), 1, 0, true);
  settle(2, 2, true);
  persister.settle(other, {QueueId(2), 0}, Sequence(3), Sequence(3), 1, 0, true);
  persister.submit_if_idle();
  EXPECT_EQ(ranges(batches.at(0)), (Texts{"1:1-2/2", "2:2-3/2"}));
  settle(3, 3, true);  // a cursor from before must not reach into the new collection
  complete();
  persister.submit_if_idle();
  EXPECT_EQ(ranges(batches.at(1)), Texts{"1:3-3/1"});
}

TEST_F(PersisterTest, NumbersAreSyncedAndReplacedWhileTheyWait) {
  Persister::Cursor numbers;
  persister.numbers(numbers, {kStream, Sequence(64), Sequence(0)});
  persister.numbers(numbers, {kStream, Sequence(64), Sequence(32)});
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_TRUE(batches[0].sync);
  ASSERT_EQ(batches[0].numbers.size(), 1u);
  persister.numbers(numbers, {kStream, Sequence(64), Sequence(99)});
  const auto done = persister.completed(in_flight.front(), false);
  ASSERT_EQ(done.numbers.size(), 1u);
  EXPECT_EQ(done.numbers[0].delivered_ceiling, Sequence(32));
}

TEST_F(PersisterTest, SpillsNeedNoSync) {
  put(1, 0, true);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_FALSE(batches[0].sync);
  EXPECT_TRUE(batches[0].puts.at(0).transient);
}

TEST_F(PersisterTest, WatcherIsNamedOncePerBatch) {
  Persister::BatchNumber watched = 0;
  put(1);
  persister.watch(QueueId(1), watched);
  put(2);
  persister.watch(QueueId(1), watched);
  persister.submit_if_idle();
  put(3);
  persister.watch(QueueId(1), watched);
  EXPECT_EQ(persister.completed(in_flight.at(0), false).watchers.size(), 1u);
  persister.submit_if_idle();
  EXPECT_EQ(persister.completed(in_flight.at(1), false).watchers.size(), 1u);
}

// A batch that was emptied by drops starts anew; who watched it watches again.
TEST_F(PersisterTest, WatcherOfAnEmptiedBatchIsNotForgotten) {
  Persister::BatchNumber watched = 0;
  const PutNumber first = put(1);
  persister.watch(QueueId(1), watched);
  persister.drop(first);
  persister.submit_if_idle();
  put(2);
  persister.watch(QueueId(1), watched);
  persister.submit_if_idle();
  EXPECT_EQ(persister.completed(in_flight.at(0), false).watchers.size(), 1u);
}

TEST_F(PersisterTest, FullBatchIsSealedAndTheNextWaitsItsTurn) {
  limits.max_batch_bytes = 2 * testing::make_message("abc", true)->stored().size();
  for (std::uint64_t i = 1; i <= 5; ++i) put(i, i);
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].puts.size(), 2u);
  const PutNumber sealed = 3;
  EXPECT_TRUE(persister.drop(sealed));  // waits still
  complete();
  persister.submit_if_idle();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].puts.size(), 1u);
  complete();
  persister.submit_if_idle();
  complete();
  EXPECT_EQ(confirms(), (Texts{"3-3", "1-2", "4-5"}));
}

TEST_F(PersisterTest, SubmitEverythingDoesNotWaitForTheOneInFlight) {
  put(1, 1);
  persister.submit_if_idle();
  put(2, 2);
  persister.submit_everything();
  ASSERT_EQ(batches.size(), 2u);
  complete();
  complete();
  EXPECT_EQ(confirms(), Texts{"1-2"});
}

TEST_F(PersisterTest, ForgottenQueueLeavesNothingToWrite) {
  Persister::Cursor numbers;
  settle(1, 2, true);
  persister.numbers(numbers, {kStream, Sequence(64), Sequence(0)});
  persister.forget_queue(QueueId(1));
  persister.submit_if_idle();
  EXPECT_TRUE(batches.empty());
  EXPECT_TRUE(persister.idle());
}

TEST_F(PersisterTest, NothingIsAnsweredAfterAFailure) {
  put(1, 1);
  persister.submit_if_idle();
  put(2, 2);
  persister.submit_everything();
  persister.completed(in_flight.at(0), true);
  persister.completed(in_flight.at(1), true);
  put(3, 3);
  persister.submit_if_idle();
  EXPECT_EQ(batches.size(), 2u);
  EXPECT_EQ(confirms(), Texts{});
}

TEST_F(PersisterTest, PublisherThatIsGoneIsNotAnswered) {
  put(1, 1);
  persister.submit_if_idle();
  outboxes.forget(kPublisher);
  complete();
  EXPECT_EQ(confirms(), Texts{});
  EXPECT_EQ(outboxes.find(kPublisher), nullptr);
}

}  // namespace
}  // namespace stoat::broker
