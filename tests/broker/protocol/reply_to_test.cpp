// Direct reply-to: requests and replies without a reply queue.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

constexpr const char* kReplyTo = "amq.rabbitmq.reply-to";

class ReplyTo : public ProtocolTest {
 protected:
  void SetUp() override {
    requester_.emplace(connect());
    responder_.emplace(connect());
    requests_ = queue("requests");
    responder_->declare_queue(1, requests_);
    responder_->consume(1, requests_, "server", true);
  }
  void request(std::string_view body, std::uint16_t channel = 1) {
    Properties properties;
    properties.reply_to = kReplyTo;
    properties.correlation_id = body;
    requester_->publish(channel, "", requests_, body, properties);
  }
  // The address that the responder sees in place of the pseudo-queue.
  std::string served_address() {
    return responder_->expect_delivery(1).properties().reply_to.value();
  }

  std::optional<WireClient> requester_;
  std::optional<WireClient> responder_;
  std::string requests_;
};

TEST_F(ReplyTo, RepliesReachTheRequester) {
  EXPECT_EQ(requester_->consume(1, kReplyTo, "replies", true), "replies");
  for (int i = 0; i < 20; ++i) {
    const std::string body = std::to_string(i);
    request(body);
    const Delivery asked = responder_->expect_delivery(1);
    EXPECT_EQ(asked.properties().correlation_id, body) << "the rest of the properties is kept";
    const std::string address = asked.properties().reply_to.value();
    EXPECT_TRUE(address.starts_with("amq.rabbitmq.reply-to.")) << address;
    Properties properties;
    properties.correlation_id = asked.properties().correlation_id;
    responder_->publish(1, "", address, "re: " + asked.body, properties);
    const Delivery reply = requester_->expect_delivery(1);
    EXPECT_EQ(reply.body, "re: " + body);
    EXPECT_EQ(reply.properties().correlation_id, body);
    EXPECT_EQ(reply.method.consumer_tag.text, "replies");
    EXPECT_EQ(reply.method.exchange.text, "");
    EXPECT_EQ(reply.method.routing_key.text, address);
    EXPECT_FALSE(reply.method.redelivered);
  }
}

TEST_F(ReplyTo, ManyRepliesKeepTheirOrder) {
  requester_->consume(1, kReplyTo, "", true);
  request("all");
  const std::string address = served_address();
  for (int i = 0; i < 300; ++i) responder_->publish(1, "", address, std::to_string(i));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(requester_->expect_delivery(1).body, std::to_string(i));
}

TEST_F(ReplyTo, EachChannelHasItsOwnAddress) {
  requester_->open_channel(2);
  requester_->consume(1, kReplyTo, "one", true);
  requester_->consume(2, kReplyTo, "two", true);
  request("a", 1);
  const std::string first = served_address();
  request("b", 2);
  const std::string second = served_address();
  EXPECT_NE(first, second);
  responder_->publish(1, "", second, "for two");
  responder_->publish(1, "", first, "for one");
  EXPECT_EQ(requester_->expect_delivery(2).body, "for two");
  EXPECT_EQ(requester_->expect_delivery(1).body, "for one");
}

TEST_F(ReplyTo, BigRepliesGoThrough) {
  requester_->consume(1, kReplyTo, "", true);
  request("big");
  const std::string body(1 << 20, 'r');
  responder_->publish(1, "", served_address(), body);
  EXPECT_TRUE(requester_->expect_delivery(1).body == body);
}

TEST_F(ReplyTo, ASecondConsumerOnTheChannelIsRefused) {
  requester_->consume(1, kReplyTo, "one", true);
  requester_->send(1, basic::Consume{0, kReplyTo, "two", false, true, false, false, {}});
  EXPECT_EQ(requester_->expect_channel_close(1, 406),
            "PRECONDITION_FAILED - reply consumer already set");
}

TEST_F(ReplyTo, CancelEndsItAndANewOneMayCome) {
  requester_->consume(1, kReplyTo, "one", true);
  request("a");
  const std::string old_address = served_address();
  requester_->cancel(1, "one");
  responder_->publish(1, "", old_address, "to nobody");
  requester_->nothing_within(kQuiet);
  requester_->consume(1, kReplyTo, "two", true);
  request("b");
  responder_->publish(1, "", served_address(), "to two");
  EXPECT_EQ(requester_->expect_delivery(1).body, "to two");
}

TEST_F(ReplyTo, AddressesCanBeAskedFor) {
  requester_->consume(1, kReplyTo, "", true);
  request("a");
  const std::string address = served_address();
  EXPECT_TRUE(queue_exists(*responder_, address)) << "how a responder sees whether to go on";
  requester_->close();
  EXPECT_FALSE(queue_exists(*responder_, address));
  // The channel was opened anew by that question, and a late reply harms nobody.
  responder_->publish(1, "", address, "late");
  responder_->nothing_within(kQuiet);
}

TEST_F(ReplyTo, ForgedAddressesReachNobody) {
  requester_->consume(1, kReplyTo, "", true);
  request("a");
  std::string address = served_address();
  for (const std::string& forged :
       {std::string(kReplyTo) + ".", std::string(kReplyTo) + ".nonsense",
        address.substr(0, address.size() - 1), address + "x", std::string(kReplyTo) + "..a.b.c",
        std::string(kReplyTo)}) {
    responder_->publish(1, "", forged, "forged");
  }
  responder_->publish(1, "", address, "genuine");
  EXPECT_EQ(requester_->expect_delivery(1).body, "genuine");
}

TEST_F(ReplyTo, TheRequesterMayAnswerItselfOnAnotherChannel) {
  requester_->consume(1, kReplyTo, "", true);
  request("a");
  requester_->open_channel(2);
  requester_->publish(2, "", served_address(), "own");
  EXPECT_EQ(requester_->expect_delivery(1).body, "own");
}

}  // namespace
}  // namespace stoat::test
