// Publisher confirms and returns: one answer per publish, a return before its ack.

#include <set>

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Confirms : public ProtocolTest {
 protected:
  static Properties persistent() {
    Properties properties;
    properties.delivery_mode = 2;
    return properties;
  }
};

TEST_F(Confirms, EveryPublishIsAckedOnce) {
  WireClient client = connect();
  const std::string durable = queue("durable"), transient = queue("transient");
  client.declare_queue(1, durable, {}, true);
  client.declare_queue(1, transient);
  client.confirm_select(1);
  const std::uint64_t count = 500;
  for (std::uint64_t i = 0; i < count; ++i) {
    // Persistent and not, kept and thrown away: their confirms become ready at different times.
    const std::string& to = i % 3 == 0 ? transient : durable;
    client.publish(1, "", to, std::to_string(i), i % 2 == 0 ? persistent() : Properties{});
  }
  for (const bool acked : client.collect_confirms(1, count)) ASSERT_TRUE(acked);
  client.nothing_within(kQuiet);
  EXPECT_EQ(client.ready_count(1, durable) + client.ready_count(1, transient), count);
}

TEST_F(Confirms, TagsCountFromOneOnEachChannelAndFromTheSelect) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  client.publish(1, "", q, "before the select");
  client.confirm_select(1);
  client.open_channel(2);
  client.confirm_select(2);
  client.publish(1, "", q, "a");
  EXPECT_EQ(client.expect_confirm(1).tag, 1u);
  client.publish(2, "", q, "b");
  EXPECT_EQ(client.expect_confirm(2).tag, 1u);
  client.publish(1, "", q, "c");
  EXPECT_EQ(client.expect_confirm(1).tag, 2u);
  client.confirm_select(1);  // once more changes nothing
  client.publish(1, "", q, "d");
  EXPECT_EQ(client.expect_confirm(1).tag, 3u);
}

TEST_F(Confirms, SelectWithNoWaitIsNotAnswered) {
  WireClient client = connect();
  client.send(1, confirm::Select{true});
  client.publish(1, "", name("nobody"), "m");
  EXPECT_EQ(client.expect_confirm(1).tag, 1u);
}

TEST_F(Confirms, AReturnComesBeforeItsAckWithTheContentIntact) {
  WireClient client = connect();
  const std::string q = queue(), nobody = name("nobody");
  client.declare_queue(1, q);
  client.confirm_select(1);
  Properties properties;
  properties.headers = Table{{"s", "text"}, {"n", 1}, {"t", Table{{"k", Array{true, Void{}}}}}};
  properties.message_id = "id";
  std::uint64_t tag = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{131072}, std::size_t{1} << 20}) {
    std::string body(size, 'b');
    for (std::size_t i = 0; i < size; i += 97) body[i] = static_cast<char>(i);

    client.publish(1, "", q, body, properties, true);
    EXPECT_EQ(client.expect_confirm(1).tag, ++tag) << "routable, so nothing is returned";

    client.publish(1, "", nobody, body, properties, true);
    const Returned returned = client.expect_content<basic::Return>(1);
    EXPECT_EQ(returned.method.reply_code, 312);
    EXPECT_EQ(returned.method.reply_text.text, "NO_ROUTE");
    EXPECT_EQ(returned.method.exchange.text, "");
    EXPECT_EQ(returned.method.routing_key.text, nobody);
    EXPECT_EQ(returned.raw_properties, properties.encode());
    EXPECT_TRUE(returned.body == body);
    const Confirm ack = client.expect_confirm(1);
    EXPECT_EQ(ack.tag, ++tag);
    EXPECT_FALSE(ack.nack);
  }
}

TEST_F(Confirms, ReturnsStayInFrontOfTheirAcksInALongRun) {
  WireClient client = connect();
  const std::string q = queue(), nobody = name("nobody");
  client.declare_queue(1, q, {}, true);
  client.confirm_select(1);
  const std::uint64_t count = 400;
  for (std::uint64_t tag = 1; tag <= count; ++tag)
    client.publish(1, "", tag % 4 == 0 ? nobody : q, std::to_string(tag), persistent(), true);

  std::uint64_t settled = 0;  // tags up to here, and …
  std::set<std::uint64_t> beyond, returned;
  while (settled < count) {
    const Frame frame = client.take(1, "basic.return, basic.ack or content");
    if (frame.kind == FrameDecoder::Kind::body) {
      const std::uint64_t tag = std::stoull(*frame.payload);
      EXPECT_EQ(tag % 4, 0u) << "a routable message was returned";
      EXPECT_TRUE(tag > settled && !beyond.contains(tag)) << tag << " was returned after its ack";
      EXPECT_TRUE(returned.insert(tag).second) << tag << " was returned twice";
      continue;
    }
    if (frame.kind != FrameDecoder::Kind::method) continue;
    const auto ack = decode_method<basic::Ack>(*frame.payload);
    if (!ack) continue;
    if (ack->multiple) {
      ASSERT_GT(ack->delivery_tag, settled);
      settled = ack->delivery_tag;
    } else {
      ASSERT_TRUE(beyond.insert(ack->delivery_tag).second);
    }
    while (beyond.erase(settled + 1) != 0) ++settled;
    for (std::uint64_t tag = 4; tag <= settled; tag += 4)
      ASSERT_TRUE(returned.contains(tag)) << tag << " was acked and not returned before";
  }
  EXPECT_EQ(returned.size(), count / 4);
}

TEST_F(Confirms, UnroutableIsAckedAndWithoutMandatoryNotReturned) {
  WireClient client = connect();
  client.confirm_select(1);
  client.publish(1, "amq.direct", name("nobody"), "m", persistent());
  const Confirm ack = client.expect_confirm(1);
  EXPECT_EQ(ack.tag, 1u);
  EXPECT_FALSE(ack.nack);
}

TEST_F(Confirms, MandatoryReturnsComeWithoutConfirmModeToo) {
  WireClient client = connect();
  const std::string nobody = name("nobody");
  client.publish(1, "amq.topic", nobody, "m", {}, true);
  const Returned returned = client.expect_content<basic::Return>(1);
  EXPECT_EQ(returned.method.exchange.text, "amq.topic");
  EXPECT_EQ(returned.method.routing_key.text, nobody);
  client.nothing_within(kQuiet);
}

TEST_F(Confirms, FanOutIsAckedWhenEveryQueueHasIt) {
  WireClient client = connect();
  const std::string x = exchange();
  client.declare_exchange(1, x, "fanout");
  std::vector<std::string> queues;
  for (int i = 0; i < 5; ++i) {
    queues.push_back(queue(std::to_string(i)));
    client.declare_queue(1, queues.back(), {}, i % 2 == 0);
    client.bind(1, queues.back(), x, "");
  }
  client.confirm_select(1);
  for (int i = 0; i < 20; ++i) client.publish(1, x, "", "m", persistent());
  client.collect_confirms(1, 20);
  WireClient other = connect();
  for (const std::string& q : queues) EXPECT_EQ(other.ready_count(1, q), 20u);
}

TEST_F(Confirms, AreNotHeldUpByAConsumerThatDoesNotAck) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q, {}, true);
  client.open_channel(2);
  client.consume(2, q, "tag");
  client.confirm_select(1);
  client.publish(1, "", q, "m", persistent());
  EXPECT_FALSE(client.expect_confirm(1).nack);
  EXPECT_EQ(client.expect_delivery(2).body, "m");
}

TEST_F(Confirms, APublishToADeletedQueueIsAnsweredStill) {
  WireClient client = connect(), other = connect();
  const std::string q = queue();
  client.confirm_select(1);
  std::uint64_t sent = 0;
  for (int round = 0; round < 10; ++round) {
    other.declare_queue(1, q, {}, true);
    for (int i = 0; i < 50; ++i, ++sent) client.publish(1, "", q, "m", persistent());
    other.delete_queue(1, q);
  }
  client.collect_confirms(1, sent);
  client.nothing_within(kQuiet);
}

TEST_F(Confirms, AFailedPublishClosesTheChannelAndConfirmsNothingAfterIt) {
  WireClient client = connect();
  const std::string q = queue(), missing = name("missing");
  client.declare_queue(1, q);
  client.confirm_select(1);
  client.publish(1, missing, "k", "m");
  EXPECT_EQ(client.expect_channel_close(1, 404),
            "NOT_FOUND - no exchange '" + missing + "' in vhost '/'");
  client.open_channel(1);  // no longer in confirm mode
  client.publish(1, "", q, "m");
  EXPECT_TRUE(eventually([&] { return client.ready_count(1, q) == 1; }));
}

TEST_F(Confirms, DoNotMixWithTransactions) {
  WireClient client = connect();
  client.confirm_select(1);
  client.send(1, tx::Select{});
  client.expect_channel_close(1, 406);
  client.open_channel(1);
  client.call<tx::SelectOk>(1, tx::Select{});
  client.send(1, confirm::Select{});
  client.expect_channel_close(1, 406);
}

}  // namespace
}  // namespace stoat::test
