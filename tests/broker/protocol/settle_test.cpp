// Acknowledging: ack, nack, reject, multiple, requeue to the original position, redelivered flags.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

using Bodies = std::vector<std::string>;

class Settle : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    q_ = queue();
    client_->declare_queue(1, q_);
  }
  void publish(int from, int to) {
    client_->open_channel(9);
    client_->confirm_select(9);
    for (int i = from; i <= to; ++i) client_->publish(9, "", q_, std::to_string(i));
    client_->collect_confirms(9, static_cast<std::uint64_t>(to - from + 1));
    client_->close_channel(9);
  }
  // basic.get of this many messages, left unacknowledged; tags count from the channel's first.
  void take(std::uint16_t channel, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(client_->get(channel, q_, false));
  }
  // "1*" for a body "1" that is marked as redelivered.
  Bodies drain_marked() {
    Bodies all;
    for (const Gotten& message : client_->drain(1, q_))
      all.push_back(message.body + (message.method.redelivered ? "*" : ""));
    return all;
  }

  std::optional<WireClient> client_;
  std::string q_;
};

TEST_F(Settle, RequeuedMessagesReturnToTheirOriginalPositions) {
  publish(1, 10);
  take(1, 5);
  for (const std::uint64_t tag : {3, 1, 5}) client_->nack(1, tag, false, true);
  for (const std::uint64_t tag : {2, 4}) client_->ack(1, tag);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "3*", "5*", "6", "7", "8", "9", "10"}));
}

TEST_F(Settle, NackMultipleReturnsAllInOrder) {
  publish(1, 6);
  take(1, 4);
  client_->nack(1, 4, true, true);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "2*", "3*", "4*", "5", "6"}));
}

TEST_F(Settle, NackOfTagZeroWithMultipleMeansAllThereAre) {
  publish(1, 4);
  take(1, 3);
  client_->nack(1, 0, true, true);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "2*", "3*", "4"}));
}

TEST_F(Settle, AckOfTagZeroWithMultipleAcksAll) {
  publish(1, 4);
  take(1, 3);
  client_->ack(1, 0, true);
  client_->close_channel(1);
  client_->open_channel(1);
  EXPECT_EQ(drain_marked(), (Bodies{"4"}));
}

TEST_F(Settle, ClosingTheChannelReturnsWhatIsUnacknowledgedInOrder) {
  publish(1, 10);
  client_->open_channel(2);
  take(2, 6);
  client_->ack(2, 2);
  client_->ack(2, 5);
  client_->close_channel(2);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "3*", "4*", "6*", "7", "8", "9", "10"}));
}

TEST_F(Settle, ReturnsFromTwoChannelsMergeIntoTheOriginalOrder) {
  publish(1, 9);
  client_->open_channel(2);
  client_->open_channel(3);
  for (int i = 0; i < 3; ++i) {
    take(2, 1);
    take(3, 1);
  }
  client_->close_channel(3);
  client_->close_channel(2);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "2*", "3*", "4*", "5*", "6*", "7", "8", "9"}));
}

TEST_F(Settle, ALostConnectionReturnsItsMessagesOnce) {
  publish(1, 5);
  WireClient other = connect();
  other.qos(1, 3);
  other.consume(1, q_, "tag");
  for (int i = 0; i < 3; ++i) other.expect_delivery(1);
  other.socket().reset();
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 5; }));
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "2*", "3*", "4", "5"}));
}

TEST_F(Settle, AckMultipleCoversGettenAndConsumedOnTheChannel) {
  publish(1, 6);
  client_->open_channel(2);
  client_->qos(2, 3);
  client_->consume(2, q_, "tag");
  for (int i = 0; i < 3; ++i) client_->expect_delivery(2);
  client_->cancel(2, "tag");
  take(2, 2);
  client_->ack(2, 4, true);
  client_->close_channel(2);
  EXPECT_EQ(drain_marked(), (Bodies{"5*", "6"}));
}

TEST_F(Settle, RejectDropsOrRequeues) {
  publish(1, 3);
  take(1, 3);
  client_->reject(1, 1, false);
  client_->reject(1, 2, true);
  client_->nack(1, 3, false, false);
  EXPECT_EQ(drain_marked(), (Bodies{"2*"}));
}

TEST_F(Settle, AConsumerGetsWhatItRejectedAgainAsRedelivered) {
  client_->qos(1, 1);
  client_->consume(1, q_, "tag");
  client_->publish(1, "", q_, "m");
  Delivery first = client_->expect_delivery(1);
  EXPECT_FALSE(first.method.redelivered);
  client_->reject(1, first.method.delivery_tag, true);
  const Delivery second = client_->expect_delivery(1);
  EXPECT_TRUE(second.method.redelivered);
  EXPECT_EQ(second.method.delivery_tag, 2u) << "tags go on counting";
  client_->ack(1, 2);
}

TEST_F(Settle, UnknownTagsCloseTheChannel) {
  publish(1, 2);
  const auto expect_refused = [&](const auto& method, const std::string& tag) {
    client_->open_channel(2);
    take(2, 1);
    client_->send(2, method);
    EXPECT_EQ(client_->expect_channel_close(2, 406),
              "PRECONDITION_FAILED - unknown delivery tag " + tag)
        << method_name(method.kId);
  };
  expect_refused(basic::Ack{99, false}, "99");
  expect_refused(basic::Ack{99, true}, "99");
  expect_refused(basic::Nack{99, false, true}, "99");
  expect_refused(basic::Reject{99, true}, "99");
  expect_refused(basic::Ack{0, false}, "0");
  expect_refused(basic::Ack{std::uint64_t{1} << 63, false}, "9223372036854775808");
}

TEST_F(Settle, AckingTwiceClosesTheChannelAndTakesNoOther) {
  publish(1, 3);
  client_->open_channel(2);
  take(2, 3);
  client_->ack(2, 2);
  client_->ack(2, 2);
  EXPECT_EQ(client_->expect_channel_close(2, 406), "PRECONDITION_FAILED - unknown delivery tag 2");
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 2; }));
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "3*"}));
}

TEST_F(Settle, TagsOfAutomaticallyAcknowledgedMessagesAreUnknown) {
  publish(1, 1);
  const auto message = client_->get(1, q_, true);
  client_->ack(1, message->method.delivery_tag);
  EXPECT_EQ(client_->expect_channel_close(1, 406), "PRECONDITION_FAILED - unknown delivery tag 1");
}

TEST_F(Settle, TagsBelongToTheirChannel) {
  publish(1, 2);
  client_->open_channel(2);
  take(2, 1);
  client_->ack(1, 1);
  client_->expect_channel_close(1, 406);
  client_->ack(2, 1);
  client_->open_channel(1);
  EXPECT_EQ(drain_marked(), (Bodies{"2"}));
}

TEST_F(Settle, RecoverWithRequeueReturnsAllInOrder) {
  publish(1, 5);
  take(1, 3);
  client_->ack(1, 2);
  client_->call<basic::RecoverOk>(1, basic::Recover{true});
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "3*", "4", "5"}));
}

TEST_F(Settle, RecoverAsyncDoesTheSameWithoutAnAnswer) {
  publish(1, 3);
  take(1, 2);
  client_->send(1, basic::RecoverAsync{true});
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "2*", "3"}));
}

TEST_F(Settle, RecoverWithoutRequeueRedeliversToTheSameConsumer) {
  STOAT_OWN_CHOICE("others refuse recover(requeue=false) with 540");
  WireClient rival = connect();
  publish(1, 3);
  client_->consume(1, q_, "mine");
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(client_->expect_delivery(1).body, std::to_string(i));
  rival.consume(1, q_, "rival");
  client_->ack(1, 2);
  client_->call<basic::RecoverOk>(1, basic::Recover{false});
  for (const char* body : {"1", "3"}) {
    const Delivery again = client_->expect_delivery(1);
    EXPECT_EQ(again.body, body);
    EXPECT_EQ(again.method.consumer_tag.text, "mine");
    EXPECT_TRUE(again.method.redelivered);
    EXPECT_GT(again.method.delivery_tag, 3u);
    client_->ack(1, again.method.delivery_tag);
  }
  rival.nothing_within(kQuiet);
}

TEST_F(Settle, CancelLeavesUnacknowledgedMessagesWithTheClient) {
  publish(1, 5);
  client_->open_channel(2);
  client_->qos(2, 3);
  client_->consume(2, q_, "tag");
  for (int i = 0; i < 3; ++i) client_->expect_delivery(2);
  client_->cancel(2, "tag");
  EXPECT_EQ(client_->ready_count(1, q_), 2u) << "cancel returns nothing to the queue";
  client_->ack(2, 2);
  client_->close_channel(2);
  EXPECT_EQ(drain_marked(), (Bodies{"1*", "3*", "4", "5"}));
}

TEST_F(Settle, MessagesTakenFromADeletedQueueMayStillBeSettled) {
  publish(1, 3);
  client_->open_channel(2);
  take(2, 3);
  client_->delete_queue(1, q_);
  client_->ack(2, 1);
  client_->nack(2, 2, false, true);
  client_->reject(2, 3, false);
  client_->close_channel(2);  // the channel was alive, and nothing comes back
  client_->declare_queue(1, q_);
  EXPECT_TRUE(drain_marked().empty());
}

}  // namespace
}  // namespace stoat::test
