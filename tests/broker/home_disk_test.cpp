// Queues longer than their window, spilled messages, and what survives a stop or a power cut.

#include <gtest/gtest.h>

#include "broker/home.hpp"
#include "home_driver.hpp"

namespace stoat::broker {
namespace {

using testing::HomeDriver;
using Bodies = std::vector<std::string>;

constexpr std::uint64_t kQueue = 1;
constexpr std::uint64_t kPublisher = 10;
constexpr std::uint64_t kReader = 20;
constexpr std::size_t kCost = kMessageOverheadBytes + Message::kFixedBytes + 3 + 3;  // 3-byte body

HomeLimits tiny_windows() {
  HomeLimits limits;
  limits.max_queue_window_bytes = 4 * kCost;
  limits.min_queue_window_bytes = 2 * kCost;
  limits.home_window_bytes = 6 * kCost;
  limits.read_messages = 3;
  return limits;
}

std::string body(int number) {
  return std::to_string(100 + number);
}

Bodies numbered(int first, int last, const char* mark = "") {
  Bodies all;
  for (int i = first; i <= last; ++i) all.push_back(body(i) + mark);
  return all;
}

class HomeDiskTest : public ::testing::TestWithParam<bool> {
 protected:
  HomeDiskTest() : driver(tiny_windows()) {}

  void publish(int first, int last, bool persistent, std::uint64_t queue = kQueue) {
    for (int i = first; i <= last; ++i) {
      driver.publish(kPublisher, queue, body(i), static_cast<std::uint64_t>(i), persistent);
    }
  }
  std::size_t memory(std::uint64_t queue = kQueue) {
    return driver.home->queue_stats(QueueId(queue))->memory_bytes;
  }

  HomeDriver driver;
};

TEST_F(HomeDiskTest, WhatCannotBeReadEndsThoseWhoWaitForIt) {
  driver.make_queue(kQueue);
  driver.make_queue(kQueue + 1);
  publish(1, 20, true);
  publish(1, 2, true, kQueue + 1);
  driver.settle_down();
  driver.store.reads_fail = true;
  for (int round = 0; round < 3; ++round) {
    driver.consume(kQueue, driver.consumer(kReader, 1 + static_cast<std::uint64_t>(round)));
    driver.settle_down();
    // What lies before the bad place is delivered; then the consumer is cancelled, once.
    EXPECT_EQ(driver.bodies(kReader), round == 0 ? numbered(1, 4) : Bodies{});
    EXPECT_EQ(driver.inbox[kReader].cancelled.size(), static_cast<std::size_t>(round) + 1);
    EXPECT_EQ(driver.home->counts(QueueId(kQueue)).consumers, 0u);
    EXPECT_EQ(driver.home->counts(QueueId(kQueue)).ready, 16u);
    EXPECT_EQ(driver.store.reads_waiting(), 0u) << "nobody waits, nothing is read";
  }
  std::optional<Got> got;
  driver.home->get(QueueId(kQueue), [&](Got answer) { got = std::move(answer); });
  driver.settle_down();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->unreadable);
  EXPECT_EQ(got->message, nullptr);

  // The queue beside it is none the worse, and when the disk can be read again, this one is back.
  driver.consume(kQueue + 1, driver.consumer(kReader, 10));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(1, 2));
  driver.store.reads_fail = false;
  driver.consume(kQueue, driver.consumer(kReader, 11));
  driver.settle_down();
  Bodies rest;
  for (std::uint64_t at = 5; rest.size() < 16 && at < 100; ++at) {
    for (auto& one : driver.bodies(kReader)) rest.push_back(one);
    driver.settle_down();
  }
  EXPECT_EQ(rest, numbered(5, 20));
}

TEST_F(HomeDiskTest, APurgeNeedsNoRead) {
  driver.make_queue(kQueue);
  publish(1, 20, true);
  driver.settle_down();
  driver.store.reads_fail = true;
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_EQ(driver.home->purge(QueueId(kQueue)), 16u);
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 4);
  publish(30, 31, true);
  driver.consume(kQueue, driver.consumer(kReader, 2));
  driver.settle_down();
  const auto bodies = driver.bodies(kReader);
  EXPECT_EQ(Bodies(bodies.end() - 2, bodies.end()), numbered(30, 31));
}

// Parameter: persistent or transient messages.
TEST_P(HomeDiskTest, LongQueueKeepsItsOrderAndItsWindow) {
  driver.make_queue(kQueue);
  publish(1, 60, GetParam());
  driver.settle_down();
  EXPECT_EQ(memory(), 4 * kCost);
  EXPECT_EQ(driver.home->counts(QueueId(kQueue)).ready, 60u);
  driver.consume(kQueue, driver.consumer(kReader, 1, 1));
  Bodies got;
  for (std::uint64_t at = 1; at <= 60; ++at) {
    driver.settle_down();
    for (auto& one : driver.bodies(kReader)) got.push_back(one);
    EXPECT_LE(memory(), 6 * kCost);
    driver.settle(kReader, kQueue, SettleKind::ack, at, at);
  }
  EXPECT_EQ(got, numbered(1, 60));
  driver.settle_down();
  EXPECT_EQ(memory(), 0u);
  EXPECT_TRUE(driver.store.stream(QueueId(kQueue)).alive.empty());
}

TEST_P(HomeDiskTest, EveryMessageIsTakenAndConfirmedOnce) {
  driver.make_queue(kQueue);
  publish(1, 30, GetParam());
  driver.settle_down();
  const auto confirms = driver.confirms(kPublisher);
  EXPECT_EQ(confirms.back().substr(confirms.back().find('-')), "-30");
  const std::uint64_t size = testing::make_message(body(1), true)->stored().size();
  EXPECT_EQ(driver.taken_bytes(kPublisher), 30 * size);
}

TEST_P(HomeDiskTest, PurgeOfALongQueueLeavesNothingInTheStore) {
  driver.make_queue(kQueue);
  driver.consume(kQueue, driver.consumer(kReader, 1, 2));
  publish(1, 30, GetParam());
  driver.settle_down();
  publish(31, 40, GetParam());
  EXPECT_EQ(driver.home->purge(QueueId(kQueue)), 38u);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(1, 2));
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 2);
  publish(41, 42, GetParam());
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(41, 42));
  EXPECT_LE(driver.store.stream(QueueId(kQueue)).alive.size(), 2u);
  EXPECT_EQ(driver.home->counts(QueueId(kQueue)).ready, 0u);
}

TEST_P(HomeDiskTest, PurgeDuringAReadForgetsItsAnswer) {
  driver.make_queue(kQueue);
  publish(1, 30, GetParam());
  driver.settle_down();
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.store.complete_batch();  // the delivered ceiling, for persistent ones
  driver.run_posted();
  ASSERT_GT(driver.store.reads_waiting(), 0u);
  const std::size_t before = driver.bodies(kReader).size();
  driver.home->purge(QueueId(kQueue));
  publish(31, 33, GetParam());
  driver.settle_down();
  EXPECT_LE(before, 4u);
  EXPECT_EQ(driver.bodies(kReader), numbered(31, 33));
}

TEST_P(HomeDiskTest, QueuesShareTheHomesWindow) {
  for (std::uint64_t queue = 1; queue <= 3; ++queue) {
    driver.make_queue(queue);
    publish(1, 10, GetParam(), queue);
  }
  driver.settle_down();
  EXPECT_EQ(memory(1), 4 * kCost);
  EXPECT_EQ(memory(2), 2 * kCost);
  EXPECT_EQ(memory(3), 2 * kCost);  // its minimum, though the home's window is used up
}

INSTANTIATE_TEST_SUITE_P(Kinds, HomeDiskTest, ::testing::Bool(), [](const auto& persistent) {
  return persistent.param ? "Persistent" : "Transient";
});

TEST_F(HomeDiskTest, UnackedTransientBodiesAreSpilled) {
  driver.make_queue(kQueue, false);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  publish(1, 40, false);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(1, 40));
  EXPECT_LE(memory(), 4 * kCost);
  driver.settle(kReader, kQueue, SettleKind::requeue, 1, 40);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(1, 40, "*"));
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 40);
  driver.settle_down();
  EXPECT_EQ(memory(), 0u);
  EXPECT_TRUE(driver.store.stream(QueueId(kQueue)).alive.empty());
}

TEST_F(HomeDiskTest, MessagesStillWithThePersisterNeedNoRead) {
  driver.make_queue(kQueue);
  driver.consume(kQueue, driver.consumer(kReader, 1, 1));
  driver.settle_down();
  publish(1, 9, true);  // the first batch is in flight, the window full
  for (std::uint64_t at = 1; at <= 9; ++at) {
    EXPECT_EQ(driver.bodies(kReader), numbered(static_cast<int>(at), static_cast<int>(at)));
    driver.settle(kReader, kQueue, SettleKind::ack, at, at);
  }
  EXPECT_EQ(driver.store.reads_waiting(), 0u);
}

// --- stops ---

TEST_F(HomeDiskTest, CrashKeepsWhatWasConfirmedAndMarksWhatMayHaveBeenDelivered) {
  const auto spec = driver.make_queue(kQueue);
  publish(1, 100, true);
  driver.settle_down();
  driver.consume(kQueue, driver.consumer(kReader, 1, 5));
  driver.settle_down();
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 2);
  driver.settle_down();
  publish(101, 101, true);  // not synced
  driver.store.crash(0);
  driver.restart({spec});
  EXPECT_EQ(driver.home->counts(QueueId(kQueue)).ready, 98u + 2u);  // acks are not synced
  driver.consume(kQueue, driver.consumer(kReader, 2));
  driver.settle_down();
  const Bodies got = driver.bodies(kReader);
  ASSERT_EQ(got.size(), 100u);
  EXPECT_EQ(got[0], body(1) + "*");
  EXPECT_EQ(got[6], body(7) + "*");  // below the ceiling that was persisted ahead
  EXPECT_EQ(got[99], body(100));     // above it
  publish(102, 102, true);
  driver.settle_down();
  EXPECT_EQ(driver.deliveries(kReader).size(), 1u);
}

TEST_F(HomeDiskTest, NeverConsumedMessagesAreNotRedeliveredAfterACrash) {
  const auto spec = driver.make_queue(kQueue);
  publish(1, 20, true);
  driver.settle_down();
  driver.store.crash(0);
  driver.restart({spec});
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), numbered(1, 20));
}

TEST_F(HomeDiskTest, CleanStopIsExact) {
  const auto spec = driver.make_queue(kQueue);
  publish(1, 20, true);
  driver.consume(kQueue, driver.consumer(kReader, 1, 5));
  driver.settle_down();
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 3);
  driver.settle_down();
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  bool drained = false;
  driver.home->drain([&] { drained = true; });
  driver.settle_down();
  ASSERT_TRUE(drained);
  const auto exact = driver.home->exact_numbers();
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_EQ(exact[0].reserved_next, Sequence(21));
  EXPECT_EQ(exact[0].delivered_ceiling, Sequence(8));
  driver.store.close(exact);
  driver.restart({spec});
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();
  Bodies expected = numbered(4, 8, "*");
  for (auto& one : numbered(9, 20)) expected.push_back(one);
  EXPECT_EQ(driver.bodies(kReader), expected);
}

TEST_F(HomeDiskTest, DrainWaitsForWhatIsInFlight) {
  driver.make_queue(kQueue);
  publish(1, 2, true);
  bool drained = false;
  driver.home->drain([&] { drained = true; });
  driver.turn();
  EXPECT_FALSE(drained);
  driver.store.complete_batch();
  driver.run_posted();
  EXPECT_FALSE(drained);
  driver.store.complete_batch();
  driver.run_posted();
  EXPECT_TRUE(drained);
}

TEST_F(HomeDiskTest, SettledPositionsReachTheStoreWithoutHoles) {
  driver.make_queue(kQueue);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();
  publish(1, 1, true);  // in flight: what follows is acked before it is written
  for (int i = 2; i <= 50; ++i) {
    publish(i, i, i % 3 != 0);
    driver.settle(kReader, kQueue, SettleKind::ack, static_cast<std::uint64_t>(i),
                  static_cast<std::uint64_t>(i));
  }
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 1);
  driver.settle_down();
  driver.home->drain([] {});
  driver.settle_down();
  const auto& stream = driver.store.stream(QueueId(kQueue));
  EXPECT_EQ(stream.settled.size(), 50u);
  EXPECT_LT(stream.put.size(), 10u);
}

}  // namespace
}  // namespace stoat::broker
