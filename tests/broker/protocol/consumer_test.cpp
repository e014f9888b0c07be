// Consumers: tags, cancel, exclusivity, who gets what.

#include <map>
#include <set>

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Consumers : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    q_ = queue();
    client_->declare_queue(1, q_);
  }
  void publish(int count) {
    for (int i = 1; i <= count; ++i) client_->publish(1, "", q_, std::to_string(i));
  }

  std::optional<WireClient> client_;
  std::string q_;
};

TEST_F(Consumers, GetDeliveriesInOrderWithEverythingThatWasPublished) {
  client_->consume(1, q_, "my tag");
  Properties properties;
  properties.content_type = "text/plain";
  client_->publish(1, "", q_, "first", properties);
  client_->publish(1, "", q_, "second");
  const Delivery first = client_->expect_delivery(1);
  EXPECT_EQ(first.method.consumer_tag.text, "my tag");
  EXPECT_EQ(first.method.delivery_tag, 1u);
  EXPECT_FALSE(first.method.redelivered);
  EXPECT_EQ(first.method.exchange.text, "");
  EXPECT_EQ(first.method.routing_key.text, q_);
  EXPECT_EQ(first.properties().content_type, "text/plain");
  EXPECT_EQ(first.body, "first");
  const Delivery second = client_->expect_delivery(1);
  EXPECT_EQ(second.method.delivery_tag, 2u);
  EXPECT_EQ(second.body, "second");
}

TEST_F(Consumers, TheBrokerInventsTags) {
  const std::string first = client_->consume(1, q_), second = client_->consume(1, q_);
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
  publish(1);
  const std::string tag = client_->expect_delivery(1).method.consumer_tag.str();
  EXPECT_TRUE(tag == first || tag == second);
}

TEST_F(Consumers, TagsAreReusableAfterCancelAndUniquePerChannelOnly) {
  client_->consume(1, q_, "tag");
  client_->cancel(1, "tag");
  client_->consume(1, q_, "tag");
  client_->open_channel(2);
  client_->consume(2, q_, "tag");
}

TEST_F(Consumers, ReusingATagEndsTheConnection) {
  client_->consume(1, q_, "tag");
  client_->send(1, basic::Consume{0, q_, "tag", false, false, false, false, {}});
  EXPECT_EQ(client_->expect_connection_close(530),
            "NOT_ALLOWED - attempt to reuse consumer tag 'tag'");
}

TEST_F(Consumers, NoAckDeliversEverythingAndKeepsNothing) {
  publish(50);
  client_->qos(1, 1);  // does not hold back what needs no ack
  client_->open_channel(2);
  client_->qos(2, 1);
  client_->consume(2, q_, "tag", true);
  for (int i = 1; i <= 50; ++i) EXPECT_EQ(client_->expect_delivery(2).body, std::to_string(i));
  client_->close_channel(2);
  EXPECT_TRUE(client_->drain(1, q_).empty());
}

TEST_F(Consumers, CancelStopsDeliveries) {
  client_->consume(1, q_, "tag");
  client_->publish(1, "", q_, "before");
  EXPECT_EQ(client_->expect_delivery(1).body, "before");
  client_->cancel(1, "tag");
  client_->publish(1, "", q_, "after");
  client_->nothing_within(kQuiet);
  EXPECT_EQ(client_->get(1, q_)->body, "after");
}

TEST_F(Consumers, NoDeliveryFollowsCancelOk) {
  for (int round = 0; round < 10; ++round) {
    client_->open_channel(2);
    client_->consume(2, q_, "tag", true);
    publish(100);
    client_->send(2, basic::Cancel{"tag", false});
    // Deliveries may come up to cancel-ok, none after it.
    while (true) {
      const Frame frame = client_->take(2, "basic.deliver or basic.cancel-ok");
      if (frame.kind == FrameDecoder::Kind::method &&
          peek_method_id(*frame.payload) == basic::CancelOk::kId)
        break;
    }
    client_->close_channel(2);  // close-ok would not be the next frame otherwise
    client_->call<queue::PurgeOk>(1, queue::Purge{0, q_, false});
  }
}

TEST_F(Consumers, CancellingAnUnknownTagIsOk) {
  EXPECT_EQ(client_->call<basic::CancelOk>(1, basic::Cancel{"nobody", false}).consumer_tag.text,
            "nobody");
}

TEST_F(Consumers, ConsumingFromAMissingQueueIsNotFound) {
  const std::string missing = name("missing");
  client_->send(1, basic::Consume{0, missing, "tag", false, false, false, false, {}});
  EXPECT_EQ(client_->expect_channel_close(1, 404),
            "NOT_FOUND - no queue '" + missing + "' in vhost '/'");
}

TEST_F(Consumers, ExclusiveRefusesAndIsRefused) {
  WireClient other = connect();
  const std::string in_use = "ACCESS_REFUSED - queue '" + q_ + "' in vhost '/' in exclusive use";
  client_->call<basic::ConsumeOk>(1, basic::Consume{0, q_, "only", false, false, true, false, {}});
  other.send(1, basic::Consume{0, q_, "second", false, false, false, false, {}});
  EXPECT_EQ(other.expect_channel_close(1, 403), in_use);
  other.open_channel(1);
  client_->cancel(1, "only");
  other.consume(1, q_, "shared");
  client_->send(1, basic::Consume{0, q_, "only", false, false, true, false, {}});
  EXPECT_EQ(client_->expect_channel_close(1, 403), in_use);
}

TEST_F(Consumers, DeletingTheQueueTellsEveryConsumer) {
  WireClient other = connect();
  client_->consume(1, q_, "a");
  client_->consume(1, q_, "b");
  other.consume(1, q_, "c");
  client_->open_channel(2);
  client_->send(2, queue::Delete{0, q_, false, false, false});
  std::set<std::string> told;
  for (int i = 0; i < 2; ++i) told.insert(client_->expect<basic::Cancel>(1).consumer_tag.str());
  EXPECT_EQ(told, (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(other.expect<basic::Cancel>(1).consumer_tag.text, "c");
  client_->expect<queue::DeleteOk>(2);
  client_->declare_queue(1, q_);
  client_->consume(1, q_, "a");  // its tag is free again
}

TEST_F(Consumers, ClientsWithoutTheCapabilityAreNotToldOfADeletedQueue) {
  ConnectOptions silent;
  silent.client_properties = {{"product", "old client"}};
  WireClient old = connect(silent);
  old.consume(1, q_, "tag");
  client_->delete_queue(1, q_);
  old.nothing_within(kQuiet);
}

TEST_F(Consumers, EqualOnesTakeTurns) {
  client_->open_channel(2);
  std::map<std::string, int> count;
  for (const char* tag : {"a", "b", "c"}) client_->consume(2, q_, tag);
  publish(30);
  for (int i = 0; i < 30; ++i) ++count[client_->expect_delivery(2).method.consumer_tag.str()];
  EXPECT_EQ(count, (std::map<std::string, int>{{"a", 10}, {"b", 10}, {"c", 10}}));
}

TEST_F(Consumers, HigherPriorityComesFirstAndLowerWhenItIsFull) {
  client_->open_channel(2);
  client_->open_channel(3);
  client_->qos(2, 2);
  client_->qos(3, 2);
  client_->consume(2, q_, "low", false, {{"x-priority", -1}});
  client_->consume(3, q_, "high", false, {{"x-priority", std::int64_t{10}}});
  publish(4);
  EXPECT_EQ(client_->expect_delivery(3).body, "1");
  EXPECT_EQ(client_->expect_delivery(3).body, "2");
  EXPECT_EQ(client_->expect_delivery(2).body, "3");
  EXPECT_EQ(client_->expect_delivery(2).body, "4");
  client_->ack(3, 2, true);
  publish(1);
  EXPECT_EQ(client_->expect_delivery(3).body, "1");
}

TEST_F(Consumers, APriorityThatIsNoNumberIsRefused) {
  client_->send(
      1, basic::Consume{0, q_, "tag", false, false, false, false, Table{{"x-priority", "high"}}});
  client_->expect_channel_close(1, 406);
}

TEST_F(Consumers, SingleActiveServesOneAndHandsOverWhenItGoes) {
  const std::string q = queue("single");
  client_->declare_queue(1, q, {{"x-single-active-consumer", true}});
  WireClient second = connect();
  client_->open_channel(2);
  client_->qos(2, 2);
  client_->consume(2, q, "first");
  second.consume(1, q, "second");
  for (int i = 1; i <= 5; ++i) client_->publish(1, "", q, std::to_string(i));
  EXPECT_EQ(client_->expect_delivery(2).body, "1");
  EXPECT_EQ(client_->expect_delivery(2).body, "2");
  second.nothing_within(kQuiet);  // not even when the active one is full
  client_->ack(2, 1);
  EXPECT_EQ(client_->expect_delivery(2).body, "3");
  client_->close_channel(2);  // 2 and 3 go back, then the other takes over
  for (const char* body : {"2", "3", "4", "5"}) EXPECT_EQ(second.expect_delivery(1).body, body);
}

TEST_F(Consumers, SingleActiveRefusesAnExclusiveConsumer) {
  const std::string q = queue("single");
  client_->declare_queue(1, q, {{"x-single-active-consumer", true}});
  client_->send(1, basic::Consume{0, q, "tag", false, false, true, false, {}});
  client_->expect_channel_close(1, 403);
}

TEST_F(Consumers, GetTellsHowManyAreLeft) {
  client_->confirm_select(1);
  publish(3);
  client_->collect_confirms(1, 3);
  for (const std::uint32_t left : {2, 1, 0})
    EXPECT_EQ(client_->get(1, q_)->method.message_count, left);
  EXPECT_FALSE(client_->get(1, q_));
}

TEST_F(Consumers, GetOfAPersistentMessageWaitsForNothingElse) {
  // On an otherwise idle broker: no timer or traffic of others may be what brings the answer, so
  // the limit is below a closing connection's time-out.
  constexpr milliseconds kLimit{1500};
  for (int round = 0; round < 3; ++round) {
    const std::string q = queue("durable." + std::to_string(round));
    WireClient client = connect();
    client.declare_queue(1, q, {}, true);
    WireClient publisher = connect();
    publisher.confirm_select(1);
    Properties persistent;
    persistent.delivery_mode = 2;
    for (int i = 0; i < 10; ++i) publisher.publish(1, "", q, std::to_string(i), persistent);
    publisher.collect_confirms(1, 10);
    publisher.close();
    for (int i = 0; i < 10; ++i) {
      client.send(1, basic::Get{0, q, false});
      const auto got = client.expect_content<basic::GetOk>(1, kLimit);
      ASSERT_EQ(got.body, std::to_string(i));
    }
    client.close();
  }
}

TEST_F(Consumers, GetWorksBesideAConsumerAndOutsidePrefetch) {
  client_->qos(1, 1);
  client_->consume(1, q_, "tag");
  publish(1);
  EXPECT_EQ(client_->expect_delivery(1).body, "1");
  client_->publish(1, "", q_, "2");
  client_->publish(1, "", q_, "3");
  const auto gotten = client_->get(1, q_, false);
  ASSERT_TRUE(gotten);
  EXPECT_EQ(gotten->body, "2");
  EXPECT_EQ(gotten->method.delivery_tag, 2u) << "one count of tags per channel";
  client_->ack(1, 2);
  client_->nothing_within(kQuiet);  // that ack freed no place in the consumer's prefetch
  client_->ack(1, 1);
  EXPECT_EQ(client_->expect_delivery(1).body, "3");
}

}  // namespace
}  // namespace stoat::test
