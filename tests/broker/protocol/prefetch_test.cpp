// basic.qos: per consumer, per channel, both; and channel.flow.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Prefetch : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    q_ = queue();
    client_->declare_queue(1, q_);
    client_->open_channel(2);
  }
  void publish(int count, const std::string& to = {}) {
    for (int i = 1; i <= count; ++i)
      client_->publish(1, "", to.empty() ? q_ : to, std::to_string(i));
  }
  // Exactly this many deliveries come on channel 2; returns their tags.
  std::vector<std::uint64_t> expect_deliveries(int count) {
    std::vector<std::uint64_t> tags;
    for (int i = 0; i < count; ++i) tags.push_back(client_->expect_delivery(2).method.delivery_tag);
    client_->nothing_within(kQuiet);
    return tags;
  }

  std::optional<WireClient> client_;
  std::string q_;
};

TEST_F(Prefetch, LimitsWhatIsUnacknowledged) {
  client_->qos(2, 3);
  client_->consume(2, q_, "tag");
  publish(10);
  expect_deliveries(3);
  client_->ack(2, 2);
  expect_deliveries(1);
  client_->ack(2, 4, true);
  expect_deliveries(3);
  client_->reject(2, 5, false);
  expect_deliveries(1);
}

TEST_F(Prefetch, ZeroIsUnlimited) {
  client_->qos(2, 0);
  client_->consume(2, q_, "tag");
  publish(300);
  for (int i = 0; i < 300; ++i) client_->expect_delivery(2);
}

TEST_F(Prefetch, AppliesToConsumersThatComeAfterIt) {
  client_->qos(2, 1);
  client_->consume(2, q_, "one");
  client_->qos(2, 3);
  publish(10);
  expect_deliveries(1);
  client_->consume(2, q_, "three");
  expect_deliveries(3);
}

TEST_F(Prefetch, IsEachConsumersOwn) {
  client_->qos(2, 2);
  client_->consume(2, q_, "a");
  client_->consume(2, q_, "b");
  publish(10);
  expect_deliveries(4);
}

TEST_F(Prefetch, GlobalIsSharedByTheChannel) {
  client_->qos(2, 3, true);
  client_->consume(2, q_, "a");
  client_->consume(2, q_, "b");
  const std::string other = queue("other");
  client_->declare_queue(1, other);
  client_->consume(2, other, "c");
  publish(10);
  publish(10, other);
  const auto tags = expect_deliveries(3);
  client_->ack(2, tags[0]);
  expect_deliveries(1);
  client_->ack(2, 0, true);
  expect_deliveries(3);
}

TEST_F(Prefetch, GlobalDoesNotLimitOtherChannels) {
  client_->qos(2, 1, true);
  client_->consume(2, q_, "limited");
  client_->open_channel(3);
  client_->qos(3, 8);  // so that one is left for the other
  client_->consume(3, q_, "free");
  publish(9);
  client_->expect_delivery(2);
  for (int i = 0; i < 8; ++i) client_->expect_delivery(3);
  client_->nothing_within(kQuiet);
}

TEST_F(Prefetch, BothLimitsApply) {
  client_->qos(2, 3);
  client_->qos(2, 4, true);
  client_->consume(2, q_, "a");
  client_->consume(2, q_, "b");
  publish(10);
  expect_deliveries(4);  // three to one at most, four in all
}

TEST_F(Prefetch, GlobalAppliesToConsumersThatAreThere) {
  client_->consume(2, q_, "tag");
  publish(2);
  expect_deliveries(2);
  client_->qos(2, 3, true);
  publish(5);
  expect_deliveries(1);
  client_->qos(2, 5, true);
  expect_deliveries(2);
  client_->qos(2, 0, true);
  expect_deliveries(2);
}

TEST_F(Prefetch, RequeueFreesAPlace) {
  client_->qos(2, 1);
  client_->consume(2, q_, "tag");
  publish(1);
  for (std::uint64_t tag = 1; tag <= 5; ++tag) {
    const Delivery delivery = client_->expect_delivery(2);
    ASSERT_EQ(delivery.method.delivery_tag, tag);
    ASSERT_EQ(delivery.method.redelivered, tag > 1);
    client_->nack(2, tag, false, true);
  }
}

TEST_F(Prefetch, MessagesOfACancelledConsumerStillCountForTheChannel) {
  client_->qos(2, 2, true);
  client_->consume(2, q_, "a");
  publish(5);
  expect_deliveries(2);
  client_->cancel(2, "a");
  client_->consume(2, q_, "b");
  client_->nothing_within(kQuiet);
  client_->ack(2, 1);
  expect_deliveries(1);
}

TEST_F(Prefetch, PrefetchSizeIsNotImplemented) {
  client_->send(2, basic::Qos{1024, 0, false});
  client_->expect_connection_close(540);
}

TEST_F(Prefetch, FlowPausesAndResumesTheDeliveriesOfItsChannel) {
  STOAT_OWN_CHOICE("others refuse channel.flow(active=false) with 540");
  client_->open_channel(3);
  const std::string other = queue("other");
  client_->declare_queue(1, other);
  client_->consume(2, q_, "paused", true);
  client_->consume(3, other, "running", true);
  EXPECT_FALSE(client_->call<channel::FlowOk>(2, channel::Flow{false}).active);
  publish(3);
  publish(1, other);
  client_->expect_delivery(3);
  client_->nothing_within(kQuiet);
  EXPECT_EQ(client_->get(2, q_)->body, "1") << "get is asked for, so it is answered";
  EXPECT_TRUE(client_->call<channel::FlowOk>(2, channel::Flow{true}).active);
  EXPECT_EQ(client_->expect_delivery(2).body, "2");
  EXPECT_EQ(client_->expect_delivery(2).body, "3");
}

TEST_F(Prefetch, FlowHoldsForConsumersThatComeLater) {
  STOAT_OWN_CHOICE("others refuse channel.flow(active=false) with 540");
  client_->call<channel::FlowOk>(2, channel::Flow{false});
  client_->consume(2, q_, "late");
  publish(1);
  client_->nothing_within(kQuiet);
  client_->call<channel::FlowOk>(2, channel::Flow{true});
  EXPECT_EQ(client_->expect_delivery(2).body, "1");
}

TEST_F(Prefetch, FlowThatIsActiveAlreadyIsAnswered) {
  EXPECT_TRUE(client_->call<channel::FlowOk>(2, channel::Flow{true}).active);
}

}  // namespace
}  // namespace stoat::test
