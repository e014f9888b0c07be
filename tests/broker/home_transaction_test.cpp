// prepare, one batch, release.

#include <gtest/gtest.h>

#include "broker/home.hpp"
#include "home_driver.hpp"

namespace stoat::broker {
namespace {

using testing::HomeDriver;
using Bodies = std::vector<std::string>;

constexpr std::uint64_t kPublisher = 10;
constexpr std::uint64_t kReader = 20;

class HomeTransactionTest : public ::testing::Test {
 protected:
  Settle ack(std::uint64_t queue, std::uint64_t first, std::uint64_t last) {
    return {QueueId(queue), 0, SettleKind::ack, Sequence(first), Sequence(last)};
  }
  TxPublish publish(std::uint64_t queue, std::string_view body, bool persistent = true) {
    return {QueueId(queue), testing::make_message(body, persistent)};
  }
  Home::TxId prepare(TxWork work) {
    store::Batch batch;
    const auto id = driver.home->prepare(ConnectionId(kReader), std::move(work), batch);
    if (!batch.puts.empty() || !batch.settles.empty()) {
      EXPECT_TRUE(batch.sync);
      driver.store.submit(std::move(batch), [](const auto&) {});
    }
    driver.turn();
    return id;
  }
  void release(Home::TxId id) {
    driver.home->release(id);
    driver.turn();
  }

  HomeDriver driver;
};

TEST_F(HomeTransactionTest, MessagesAreHeldBackUntilRelease) {
  driver.make_queue(1);
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  const auto id = prepare({{publish(1, "a"), publish(1, "b", false)}, {}});
  driver.publish(kPublisher, 1, "c");
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"c"}));
  EXPECT_EQ(driver.home->counts(QueueId(1)).ready, 0u);
  release(id);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a", "b"}));
}

TEST_F(HomeTransactionTest, ReleasedMessagesStandAtTheirPositions) {
  driver.make_queue(1);
  const auto id = prepare({{publish(1, "a")}, {}});
  driver.publish(kPublisher, 1, "b");
  driver.settle_down();
  release(id);
  driver.publish(kPublisher, 1, "c");
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a", "b", "c"}));
}

TEST_F(HomeTransactionTest, SettledMessagesStayUnackedUntilRelease) {
  driver.make_queue(1);
  driver.publish(kPublisher, 1, "a");
  driver.consume(1, driver.consumer(kReader, 1, 1));
  driver.settle_down();
  driver.publish(kPublisher, 1, "b");
  const auto id = prepare({{}, {ack(1, 1, 1)}});
  driver.settle(kReader, 1, SettleKind::requeue, 1, 1);  // too late
  driver.settle_down();
  EXPECT_EQ(driver.home->counts(QueueId(1)).unacked, 1u);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a"}));
  release(id);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"b"}));
  EXPECT_EQ(driver.store.stream(QueueId(1)).alive.size(), 1u);
}

// The put of a message that the transaction settles must neither be dropped before the transaction
// is safe, nor reach the store behind its settle.
TEST_F(HomeTransactionTest, PutThatStillWaitsGoesToTheStoreFirst) {
  const auto spec = driver.make_queue(1);
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  driver.publish(kPublisher, 1, "a", 1);  // in flight
  driver.publish(kPublisher, 1, "b", 2);  // waits
  const auto id = prepare({{publish(1, "c")}, {ack(1, 2, 2)}});
  EXPECT_EQ(driver.store.batches_waiting(), 3u);
  EXPECT_TRUE(driver.confirms(kPublisher).empty());
  driver.store.complete_batch();
  driver.store.complete_batch();
  driver.run_posted();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1", "2-2"}));
  EXPECT_TRUE(driver.store.survives(QueueId(1), Sequence(2)));
  driver.store.complete_batch();
  EXPECT_FALSE(driver.store.survives(QueueId(1), Sequence(2)));
  release(id);
  driver.store.crash(0);
  driver.restart({spec});
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader).size(), 2u);  // a, whose ack was never given, and c
}

TEST_F(HomeTransactionTest, CrashBeforeTheBatchLeavesAllAsItWas) {
  const auto spec = driver.make_queue(1);
  driver.publish(kPublisher, 1, "a", 1);
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  prepare({{publish(1, "b")}, {ack(1, 1, 1)}});
  driver.store.crash(0);
  driver.restart({spec});
  driver.consume(1, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a*"}));
}

TEST_F(HomeTransactionTest, RequeueTakesEffectAtRelease) {
  driver.make_queue(1, false);
  driver.publish(kPublisher, 1, "a");
  driver.consume(1, driver.consumer(kReader, 1, 1));
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a"}));
  const auto id = prepare({{}, {{QueueId(1), 0, SettleKind::requeue, Sequence(1), Sequence(1)}}});
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), Bodies{});
  release(id);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a*"}));
}

TEST_F(HomeTransactionTest, QueuesThatAreGoneAreLeftOut) {
  driver.make_queue(1);
  const auto id = prepare({{publish(1, "a"), publish(9, "b")}, {ack(9, 1, 1)}});
  driver.home->delete_queue(QueueId(1), false, false);
  driver.settle_down();
  release(id);
  EXPECT_FALSE(driver.home->counts(QueueId(1)).exists);
}

// The batch's bytes are the home's to keep, not the queue's.
TEST_F(HomeTransactionTest, BytesOutliveAQueueThatIsDeletedMeanwhile) {
  driver.make_queue(1);
  const auto id = prepare({{publish(1, "a")}, {}});
  driver.store.complete_batch();  // the numbers that cover its sequence
  const store::Put put = driver.store.front().puts.at(0);
  driver.home->delete_queue(QueueId(1), false, false);
  EXPECT_EQ(Message::from_stored(put.bytes)->body(), "a");
  driver.settle_down();
  release(id);
}

// Released messages around purged ones, whose end the store has not seen yet, must not let a read
// bring those back.
TEST_F(HomeTransactionTest, PurgedNeighboursStayGone) {
  HomeLimits limits;
  limits.max_queue_window_bytes = limits.min_queue_window_bytes = 200;  // one message
  HomeDriver small(limits);
  small.make_queue(1);
  small.consume(1, small.consumer(kReader, 1));
  small.settle_down();  // the delivered ceiling
  small.home->cancel(QueueId(1), ConnectionId(kReader), ConsumerId(1));
  const auto prepare_here = [&](std::vector<TxPublish> publishes) {
    store::Batch batch;
    const auto id = small.home->prepare(ConnectionId(kReader), {std::move(publishes), {}}, batch);
    small.store.submit(std::move(batch), [](const auto&) {});
    return id;
  };
  small.publish(kPublisher, 1, "0");  // fills the window
  const auto before = prepare_here({publish(1, "1"), publish(1, "2")});
  for (const char* body : {"3", "4", "5"}) small.publish(kPublisher, 1, body);
  const auto behind = prepare_here({publish(1, "6")});
  small.settle_down();
  EXPECT_EQ(small.home->purge(QueueId(1)), 4u);
  small.turn();  // the purge is in flight
  small.home->release(before);
  small.home->release(behind);
  small.consume(1, small.consumer(kReader, 1));
  for (int i = 0; i < 20; ++i) {
    if (small.store.reads_waiting() > 0) small.store.complete_read();
    small.run_posted();
    small.turn();
    if (i == 10) small.settle_down();
  }
  EXPECT_EQ(small.bodies(kReader), (Bodies{"1", "2", "6"}));
}

TEST_F(HomeTransactionTest, LongTransactionsPageLikeAnythingElse) {
  HomeLimits limits;
  limits.max_queue_window_bytes = limits.home_window_bytes = 1000;
  limits.min_queue_window_bytes = 500;
  limits.read_messages = 4;
  HomeDriver small(limits);
  small.make_queue(1);
  Bodies expected;
  for (int i = 0; i < 40; ++i) {
    TxWork work;
    for (int j = 0; j < 3; ++j) {
      const std::string body = std::to_string(i) + "." + std::to_string(j);
      work.publishes.push_back({QueueId(1), testing::make_message(body, j != 1)});
      expected.push_back(body);
    }
    store::Batch batch;
    const auto id = small.home->prepare(ConnectionId(kPublisher), std::move(work), batch);
    small.publish(kPublisher, 1, "between");
    expected.push_back("between");
    small.store.submit(std::move(batch), [](const auto&) {});
    small.settle_down();
    small.home->release(id);
    small.turn();
    EXPECT_LE(small.home->queue_stats(QueueId(1))->memory_bytes, 1500u);
  }
  small.consume(1, small.consumer(kReader, 1));
  small.settle_down();
  EXPECT_EQ(small.bodies(kReader), expected);
}

}  // namespace
}  // namespace stoat::broker
