#include "broker/home.hpp"

#include <gtest/gtest.h>

#include "home_driver.hpp"

namespace stoat::broker {
namespace {

using testing::HomeDriver;
using Bodies = std::vector<std::string>;

class HomeTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kQueue = 1;
  static constexpr std::uint64_t kPublisher = 10;
  static constexpr std::uint64_t kReader = 20;
  static constexpr std::uint64_t kOther = 21;

  void publish_numbers(int first, int last, bool persistent = true) {
    for (int i = first; i <= last; ++i) {
      driver.publish(kPublisher, kQueue, std::to_string(i), 0, persistent);
    }
  }
  // What a fresh consumer gets when everything is quiet; it leaves again.
  Bodies drain_with(std::uint64_t connection) {
    driver.consume(kQueue, driver.consumer(connection, 900));
    driver.settle_down();
    driver.home->cancel(QueueId(kQueue), ConnectionId(connection), ConsumerId(900));
    return driver.bodies(connection);
  }
  QueueCounts counts() { return driver.home->counts(QueueId(kQueue)); }

  HomeDriver driver;
};

// --- confirms and elision ---

TEST_F(HomeTest, PersistentMessageIsConfirmedAfterItsCommit) {
  driver.make_queue(kQueue);
  driver.publish(kPublisher, kQueue, "a", 1);
  driver.publish(kPublisher, kQueue, "b", 2);
  EXPECT_EQ(driver.confirms(kPublisher), Bodies{});
  EXPECT_TRUE(driver.store.front().sync);
  driver.settle_down();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1", "2-2"}));
  EXPECT_TRUE(driver.store.survives(QueueId(kQueue), Sequence(1)));
}

TEST_F(HomeTest, TransientMessageIsConfirmedAtOnce) {
  driver.make_queue(kQueue);
  driver.publish(kPublisher, kQueue, "a", 1, false);
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1"}));
}

TEST_F(HomeTest, MessageOnATransientQueueIsConfirmedAtOnceAndNeverWritten) {
  driver.make_queue(kQueue, false);
  driver.publish(kPublisher, kQueue, "a", 1);
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1"}));
  EXPECT_EQ(driver.store.batches_waiting(), 0u);
}

TEST_F(HomeTest, PublishToAQueueThatIsGoneCountsAsTaken) {
  driver.publish(kPublisher, 99, "a", 1);
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1"}));
  EXPECT_EQ(driver.taken_bytes(kPublisher), testing::make_message("a", true)->stored().size());
}

TEST_F(HomeTest, TagOfSeveralQueuesIsAnsweredOnceWhenTheLastIsDecided) {
  driver.make_queue(1);
  driver.make_queue(2);
  driver.make_queue(3, false);
  ToHome batch;
  const ChannelRef channel{ChannelNumber(1), ChannelIncarnation(1)};
  const auto message = testing::make_message("a", true);
  for (const std::uint64_t queue : {1, 3, 2}) {
    batch.publishes.push_back({QueueId(queue), message, channel, PublishTag(7)});
  }
  batch.publishes.push_back({QueueId(3), message, channel, PublishTag(8)});
  driver.home->take(ConnectionId(kPublisher), WorkerIndex(0), batch);
  driver.turn();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"8-8"}));
  driver.settle_down();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"7-7"}));
  EXPECT_EQ(driver.taken_bytes(kPublisher), 4 * message->stored().size());
}

TEST_F(HomeTest, MessageAckedBeforeItsBatchIsNeverWritten) {
  driver.make_queue(kQueue);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();                        // the delivered ceiling
  driver.publish(kPublisher, kQueue, "a", 1);  // in flight
  driver.publish(kPublisher, kQueue, "b", 2);  // waits
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"a", "b"}));
  driver.settle(kReader, kQueue, SettleKind::ack, 2, 2);
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"2-2"}));
  driver.settle_down();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"1-1"}));
  EXPECT_EQ(driver.store.stream(QueueId(kQueue)).put.size(), 1u);
  EXPECT_EQ(driver.home->stats().puts_elided, 1u);
}

TEST_F(HomeTest, FailedStoreConfirmsNothingMore) {
  driver.make_queue(kQueue);
  driver.publish(kPublisher, kQueue, "a", 1);
  driver.publish(kPublisher, kQueue, "b", 2);
  driver.store.fail_batch();
  driver.run_posted();
  EXPECT_EQ(driver.confirms(kPublisher), Bodies{});
  EXPECT_EQ(driver.store.batches_waiting(), 0u);
}

// --- delivery order, requeue, redelivered ---

TEST_F(HomeTest, RequeuedMessagesReturnToTheirPositions) {
  driver.make_queue(kQueue);
  publish_numbers(1, 10);
  driver.consume(kQueue, driver.consumer(kReader, 1, 5));
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "2", "3", "4", "5"}));
  driver.home->pause(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1), true);
  for (const std::uint64_t at : {3, 1, 5}) {
    driver.settle(kReader, kQueue, SettleKind::requeue, at, at);
  }
  driver.settle(kReader, kQueue, SettleKind::ack, 2, 2);
  driver.settle(kReader, kQueue, SettleKind::ack, 4, 4);
  EXPECT_EQ(drain_with(kOther), (Bodies{"1*", "3*", "5*", "6", "7", "8", "9", "10"}));
}

TEST_F(HomeTest, UndeliveredMessagesReturnAsTheyWere) {
  driver.make_queue(kQueue);
  publish_numbers(1, 3);
  driver.consume(kQueue, driver.consumer(kReader, 1, 3));
  driver.settle_down();
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  driver.settle(kReader, kQueue, SettleKind::requeue, 1, 1);
  driver.settle(kReader, kQueue, SettleKind::undelivered, 2, 3);
  EXPECT_EQ(drain_with(kOther), (Bodies{"1*", "2", "3"}));
}

TEST_F(HomeTest, RequeuedMessageComesBackFromDisk) {
  driver.make_queue(kQueue);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  publish_numbers(1, 200);
  driver.settle_down();
  EXPECT_EQ(driver.bodies(kReader).size(), 200u);
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  driver.settle(kReader, kQueue, SettleKind::ack, 50, 99);
  driver.settle(kReader, kQueue, SettleKind::requeue, 1, 200);
  EXPECT_EQ(driver.home->queue_stats(QueueId(kQueue))->memory_bytes, 0u);
  const Bodies again = drain_with(kOther);
  ASSERT_EQ(again.size(), 150u);
  EXPECT_EQ(again.front(), "1*");
  EXPECT_EQ(again[49], "100*");
  EXPECT_EQ(again.back(), "200*");
}

TEST_F(HomeTest, CancelKeepsWhatIsUnacknowledged) {
  driver.make_queue(kQueue);
  publish_numbers(1, 3);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.settle_down();
  EXPECT_TRUE(driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1)));
  EXPECT_FALSE(driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1)));
  EXPECT_EQ(counts().ready, 0u);
  EXPECT_EQ(counts().unacked, 3u);
  driver.settle(kReader, kQueue, SettleKind::ack, 2, 2);
  driver.settle(kReader, kQueue, SettleKind::requeue, 1, 3);
  EXPECT_EQ(drain_with(kOther), (Bodies{"1*", "3*"}));
}

TEST_F(HomeTest, CancelHandsOnWhatIsStaged) {
  driver.make_queue(kQueue, false);
  publish_numbers(1, 2);
  driver.home->consume(QueueId(kQueue), driver.consumer(kReader, 1));
  ToHome batch;
  batch.publishes.push_back({QueueId(kQueue), testing::make_message("3", false), {}, {}});
  driver.home->take(ConnectionId(kReader), WorkerIndex(0), batch);
  driver.turn();
  driver.publish(kReader, kQueue, "4");
  driver.inbox.clear();
  batch.publishes.push_back({QueueId(99),
                             testing::make_message("x", false),
                             {ChannelNumber(1), ChannelIncarnation(1)},
                             PublishTag(1)});
  driver.home->take(ConnectionId(kReader), WorkerIndex(0), batch);
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  EXPECT_EQ(driver.confirms(kReader), (Bodies{"1-1"}));
}

// --- consumers ---

TEST_F(HomeTest, ConsumersTakeTurnsInsideALevel) {
  driver.make_queue(kQueue, false);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.consume(kQueue, driver.consumer(kOther, 2));
  ToHome batch;
  for (int i = 1; i <= 6; ++i) {
    batch.publishes.push_back(
        {QueueId(kQueue), testing::make_message(std::to_string(i), false), {}, {}});
  }
  driver.home->take(ConnectionId(kPublisher), WorkerIndex(0), batch);
  driver.turn();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "3", "5"}));
  EXPECT_EQ(driver.bodies(kOther), (Bodies{"2", "4", "6"}));
}

TEST_F(HomeTest, LowerPriorityIsServedWhenHigherHasNoCredit) {
  driver.make_queue(kQueue, false);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  auto high = driver.consumer(kOther, 2, 2);
  high.priority = 5;
  driver.consume(kQueue, high);
  publish_numbers(1, 4);
  EXPECT_EQ(driver.bodies(kOther), (Bodies{"1", "2"}));
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"3", "4"}));
  driver.settle(kOther, kQueue, SettleKind::ack, 1, 1);
  publish_numbers(5, 6);
  EXPECT_EQ(driver.bodies(kOther), (Bodies{"5"}));
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"6"}));
}

TEST_F(HomeTest, PrefetchCountsWhatIsUnacknowledged) {
  driver.make_queue(kQueue, false);
  driver.consume(kQueue, driver.consumer(kReader, 1, 2));
  publish_numbers(1, 5);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "2"}));
  driver.settle(kReader, kQueue, SettleKind::ack, 1, 2);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"3", "4"}));
  driver.settle(kReader, kQueue, SettleKind::reject, 4, 4);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"5"}));
}

TEST_F(HomeTest, PausedConsumerGetsNothing) {
  driver.make_queue(kQueue, false);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.home->pause(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1), true);
  publish_numbers(1, 2);
  EXPECT_EQ(driver.bodies(kReader), Bodies{});
  driver.home->pause(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1), false);
  driver.turn();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "2"}));
}

TEST_F(HomeTest, DeliveriesStopAtTheWindowUntilBytesAreWritten) {
  HomeLimits limits;
  const std::uint64_t size = testing::make_message("1", false)->stored().size();
  limits.delivery_window_bytes = 2 * size;
  HomeDriver small(limits);
  small.make_queue(kQueue, false);
  auto spec = small.consumer(kReader, 1);
  spec.no_ack = true;
  small.consume(kQueue, spec);
  for (int i = 1; i <= 5; ++i) small.publish(kPublisher, kQueue, std::to_string(i), 0, false);
  EXPECT_EQ(small.bodies(kReader), (Bodies{"1", "2"}));
  small.written(kReader, size);
  EXPECT_EQ(small.bodies(kReader), (Bodies{"3"}));
  small.written(kReader, 2 * size);
  EXPECT_EQ(small.bodies(kReader), (Bodies{"4", "5"}));
}

TEST_F(HomeTest, ChannelLimitedConsumerAsksForALeaseAndReturnsTheRest) {
  driver.make_queue(kQueue, false);
  auto spec = driver.consumer(kReader, 1);
  spec.channel_limited = true;
  driver.consume(kQueue, spec);
  EXPECT_TRUE(driver.inbox[kReader].wanted.empty());
  publish_numbers(1, 2);
  ASSERT_EQ(driver.inbox[kReader].wanted.size(), 1u);
  EXPECT_EQ(driver.bodies(kReader), Bodies{});
  ToHome batch;
  batch.leases.push_back({QueueId(kQueue), ConsumerId(1), 5});
  driver.home->take(ConnectionId(kReader), WorkerIndex(0), batch);
  driver.turn();
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "2"}));
  ASSERT_EQ(driver.inbox[kReader].returned.size(), 1u);
  EXPECT_EQ(driver.inbox[kReader].returned[0].count, 3u);
  publish_numbers(3, 3);
  EXPECT_EQ(driver.inbox[kReader].wanted.size(), 2u);
}

TEST_F(HomeTest, LeaseOfAConsumerThatLeftGoesBack) {
  driver.make_queue(kQueue, false);
  auto spec = driver.consumer(kReader, 1);
  spec.channel_limited = true;
  driver.consume(kQueue, spec);
  publish_numbers(1, 1);
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  ToHome batch;
  batch.leases.push_back({QueueId(kQueue), ConsumerId(1), 2});
  driver.home->take(ConnectionId(kReader), WorkerIndex(0), batch);
  driver.turn();
  ASSERT_EQ(driver.inbox[kReader].returned.size(), 1u);
  EXPECT_EQ(driver.inbox[kReader].returned[0].count, 2u);
}

TEST_F(HomeTest, SingleActiveConsumerHandsOverWhenItLeaves) {
  driver.make_queue(kQueue, false, false, true);
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.consume(kQueue, driver.consumer(kOther, 2));
  auto high = driver.consumer(kOther, 3);
  high.priority = 1;
  driver.consume(kQueue, high);
  publish_numbers(1, 2);
  EXPECT_EQ(driver.bodies(kReader), (Bodies{"1", "2"}));
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  publish_numbers(3, 3);
  const auto next = driver.deliveries(kOther);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].consumer, ConsumerId(3));
}

TEST_F(HomeTest, ExclusiveConsumerIsAlone) {
  driver.make_queue(kQueue, false);
  auto exclusive = driver.consumer(kReader, 1);
  exclusive.exclusive = true;
  EXPECT_EQ(driver.consume(kQueue, exclusive), ConsumeResult::ok);
  EXPECT_EQ(driver.consume(kQueue, driver.consumer(kOther, 2)), ConsumeResult::exclusive_in_use);
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  EXPECT_EQ(driver.consume(kQueue, driver.consumer(kOther, 2)), ConsumeResult::ok);
  EXPECT_EQ(driver.consume(kQueue, exclusive), ConsumeResult::exclusive_in_use);
}

TEST_F(HomeTest, AutoDeleteQueueRefusesConsumersOnceItsLastLeft) {
  driver.make_queue(kQueue, false, true);
  driver.turn();
  EXPECT_TRUE(driver.unused.empty());
  driver.consume(kQueue, driver.consumer(kReader, 1));
  driver.home->cancel(QueueId(kQueue), ConnectionId(kReader), ConsumerId(1));
  EXPECT_EQ(driver.consume(kQueue, driver.consumer(kReader, 2)), ConsumeResult::no_queue);
  EXPECT_EQ(driver.unused, std::vector<QueueId>{QueueId(kQueue)});
}

// --- get, purge, delete ---

TEST_F(HomeTest, GetTakesTheNextAndSaysHowManyAreLeft) {
  driver.make_queue(kQueue, false);
  publish_numbers(1, 2);
  Got got;
  driver.home->get(QueueId(kQueue), [&](Got g) { got = std::move(g); });
  EXPECT_EQ(got.message->body(), "1");
  EXPECT_EQ(got.messages_left, 1u);
  EXPECT_EQ(got.position.sequence, Sequence(1));
  EXPECT_FALSE(got.redelivered);
  driver.settle(kReader, kQueue, SettleKind::requeue, 1, 1);
  driver.home->get(QueueId(kQueue), [&](Got g) { got = std::move(g); });
  EXPECT_TRUE(got.redelivered);
  driver.home->get(QueueId(kQueue), [&](Got g) { got = std::move(g); });
  driver.home->get(QueueId(kQueue), [&](Got g) { got = std::move(g); });
  EXPECT_EQ(got.message, nullptr);
  EXPECT_FALSE(got.queue_gone);
  driver.home->get(QueueId(99), [&](Got g) { got = std::move(g); });
  EXPECT_TRUE(got.queue_gone);
}

TEST_F(HomeTest, WaitingGetsAreAnsweredInOrderAndAtTheQueuesEnd) {
  driver.make_queue(kQueue);
  publish_numbers(1, 2);
  driver.settle_down();
  Bodies got;
  const auto note = [&](const Got& g) {
    got.push_back(g.queue_gone           ? "gone"
                  : g.message == nullptr ? "empty"
                                         : std::string(g.message->body()));
  };
  // A persistent message waits for the delivered ceiling at first.
  for (int i = 0; i < 3; ++i) driver.home->get(QueueId(kQueue), note);
  EXPECT_EQ(got, Bodies{});
  driver.settle_down();
  EXPECT_EQ(got, (Bodies{"1", "2", "empty"}));
  driver.home->delete_queue(QueueId(kQueue), false, false);
  driver.make_queue(2);
  driver.publish(kPublisher, 2, "x");
  driver.home->get(QueueId(2), note);
  driver.home->delete_queue(QueueId(2), false, false);
  driver.turn();
  EXPECT_EQ(got.back(), "gone");
}

TEST_F(HomeTest, PurgeKeepsWhatIsUnacknowledged) {
  driver.make_queue(kQueue);
  publish_numbers(1, 10);
  driver.consume(kQueue, driver.consumer(kReader, 1, 3));
  driver.settle_down();
  driver.settle(kReader, kQueue, SettleKind::requeue, 2, 2);
  driver.settle_down();                         // and delivered again
  driver.publish(kPublisher, kQueue, "11", 1);  // in flight
  driver.publish(kPublisher, kQueue, "12", 2);  // waits
  EXPECT_EQ(driver.home->purge(QueueId(kQueue)), 9u);
  driver.settle_down();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"2-2", "1-1"}));
  EXPECT_EQ(counts().ready, 0u);
  EXPECT_EQ(counts().unacked, 3u);
  EXPECT_EQ(driver.store.stream(QueueId(kQueue)).alive.size(), 3u);
  EXPECT_EQ(driver.home->purge(QueueId(99)), std::nullopt);
}

TEST_F(HomeTest, DeleteChecksAndCancelsConsumers) {
  driver.make_queue(kQueue);
  driver.publish(kPublisher, kQueue, "a", 1);  // in flight
  driver.publish(kPublisher, kQueue, "b", 2);  // waits
  const auto one = driver.consumer(kReader, 1, 1);
  driver.consume(kQueue, one);
  driver.consume(kQueue, driver.consumer(kOther, 2, 1));
  using R = Home::DeleteResult;
  EXPECT_EQ(driver.home->delete_queue(QueueId(9), false, false).result, R::no_queue);
  EXPECT_EQ(driver.home->delete_queue(QueueId(kQueue), true, false).result, R::in_use);
  EXPECT_EQ(driver.home->delete_queue(QueueId(kQueue), false, true).result, R::not_empty);
  const auto deleted =
      driver.home->delete_queue(QueueId(kQueue), false, false, ConnectionId(kOther));
  EXPECT_EQ(deleted.result, R::ok);
  EXPECT_EQ(deleted.messages, 2u);
  driver.settle_down();
  EXPECT_EQ(driver.confirms(kPublisher), (Bodies{"2-2", "1-1"}));
  EXPECT_EQ(driver.inbox[kReader].cancelled.size(), 1u);
  EXPECT_TRUE(driver.inbox[kOther].cancelled.empty());
  EXPECT_FALSE(counts().exists);
  driver.home->forget_connection(ConnectionId(kReader));
}

}  // namespace
}  // namespace stoat::broker
