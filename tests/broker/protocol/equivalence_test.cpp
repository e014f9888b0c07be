// Declaring again what exists: equal by value is fine, anything else is 406 with RabbitMQ's words.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Equivalence : public ProtocolTest {
 protected:
  void expect_inequivalent(WireClient& client, const queue::Declare& declare,
                           const std::string& text) {
    client.send(1, declare);
    EXPECT_EQ(client.expect_channel_close(1, 406),
              "PRECONDITION_FAILED - inequivalent arg " + text);
    client.open_channel(1);
  }
};

queue::Declare queue_with(std::string_view name, Table arguments) {
  queue::Declare declare;
  declare.queue = name;
  declare.arguments = std::move(arguments);
  return declare;
}

TEST_F(Equivalence, ArgumentsCompareByValueNotByEncoding) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q, {{"x-max-length", std::int8_t{10}}, {"x-max-priority", 5}});
  const std::vector<FieldValue> tens = {std::int8_t{10},   std::uint8_t{10}, std::int16_t{10},
                                        std::uint16_t{10}, std::int32_t{10}, std::uint32_t{10},
                                        std::int64_t{10}};
  for (const FieldValue& ten : tens) {
    client.declare_queue(1, q, {{"x-max-length", ten}, {"x-max-priority", 5}});
    client.declare_queue(1, q, {{"x-max-priority", 5}, {"x-max-length", ten}});  // other order
  }
}

TEST_F(Equivalence, OtherArgumentsAreRefusedOnTheChannelAlone) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q, {{"x-max-length", 10}});
  const std::string begin = "'x-max-length' for queue '" + q + "' in vhost '/': received ";
  expect_inequivalent(client, queue_with(q, {{"x-max-length", 11}}),
                      begin + "'11' but current is '10'");
  expect_inequivalent(client, queue_with(q, {}),
                      begin + "none but current is the value '10' of type 'signedint'");
  expect_inequivalent(client, queue_with(q, {{"x-max-length", 10}, {"x-message-ttl", 5}}),
                      "'x-message-ttl' for queue '" + q +
                          "' in vhost '/': received the value '5' "
                          "of type 'signedint' but current is none");
  client.send(1, queue_with(q, {{"x-max-length", "10"}}));
  client.expect_channel_close(1, 406);
  client.open_channel(1);
  client.declare_queue(1, q, {{"x-max-length", 10}});
}

TEST_F(Equivalence, UnknownArgumentsCountAndVoidIsNotAbsence) {
  STOAT_OWN_CHOICE("unknown x- arguments are part of equivalence");
  WireClient client = connect();
  const std::string q = queue(), bare = queue("bare");
  client.declare_queue(1, q, {{"x-foo", Void{}}});
  client.declare_queue(1, q, {{"x-foo", Void{}}});
  client.declare_queue(1, bare);
  const std::vector<std::pair<std::string, Table>> different = {
      {q, {{"x-bar", "a"}}},
      {q, {}},
      {q, {{"x-foo", "a"}}},
      {q, {{"x-foo", false}}},
      {q, {{"x-foo", Void{}}, {"x-bar", Void{}}}},
      {bare, {{"x-foo", Void{}}}},
  };
  for (const auto& [name, arguments] : different) {
    client.send(1, queue_with(name, arguments));
    client.expect_channel_close(1, 406);
    client.open_channel(1);
  }
}

TEST_F(Equivalence, NestedArgumentsCompareByStructure) {
  STOAT_OWN_CHOICE("unknown x- arguments are part of equivalence");
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q, {{"x-nested", Table{{"a", 1}, {"b", Array{1, "two"}}}}});
  client.declare_queue(
      1, q, {{"x-nested", Table{{"b", Array{std::int64_t{1}, "two"}}, {"a", std::int8_t{1}}}}});
  client.send(1, queue_with(q, {{"x-nested", Table{{"a", 1}, {"b", Array{"two", 1}}}}}));
  client.expect_channel_close(1, 406);
}

TEST_F(Equivalence, QueueFlags) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  queue::Declare declare = queue_with(q, {});
  declare.durable = true;
  expect_inequivalent(
      client, declare,
      "'durable' for queue '" + q + "' in vhost '/': received 'true' but current is 'false'");
  declare.durable = false;
  declare.auto_delete = true;
  expect_inequivalent(
      client, declare,
      "'auto_delete' for queue '" + q + "' in vhost '/': received 'true' but current is 'false'");
  declare.auto_delete = false;
  declare.exclusive = true;
  client.send(1, declare);
  EXPECT_TRUE(client.expect_channel_close(1, 405).starts_with(
      "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + q + "' in vhost '/'"));
}

TEST_F(Equivalence, ExchangeTypeAndFlags) {
  WireClient client = connect();
  const std::string x = exchange();
  client.declare_exchange(1, x, "direct", {{"alternate-exchange", "amq.fanout"}});
  exchange::Declare same;
  same.exchange = x;
  same.type = "direct";
  same.arguments = {{"alternate-exchange", "amq.fanout"}};
  client.call<exchange::DeclareOk>(1, same);

  const auto expect_refused = [&](const exchange::Declare& declare, const std::string& what) {
    client.send(1, declare);
    EXPECT_EQ(client.expect_channel_close(1, 406),
              "PRECONDITION_FAILED - inequivalent arg '" + what);
    client.open_channel(1);
  };
  const std::string where = "' for exchange '" + x + "' in vhost '/': received '";
  exchange::Declare other = same;
  other.type = "topic";
  expect_refused(other, "type" + where + "topic' but current is 'direct'");
  other = same;
  other.durable = true;
  expect_refused(other, "durable" + where + "true' but current is 'false'");
  other = same;
  other.auto_delete = true;
  expect_refused(other, "auto_delete" + where + "true' but current is 'false'");
  other = same;
  other.internal = true;
  expect_refused(other, "internal" + where + "true' but current is 'false'");
  other = same;
  other.arguments = {};
  client.send(1, other);
  client.expect_channel_close(1, 406);
}

TEST_F(Equivalence, PredeclaredExchangesMayBeDeclaredAsTheyAre) {
  WireClient client = connect();
  exchange::Declare declare;
  declare.exchange = "amq.topic";
  declare.type = "topic";
  declare.durable = true;
  client.call<exchange::DeclareOk>(1, declare);
  declare.durable = false;
  client.send(1, declare);
  client.expect_channel_close(1, 406);
}

TEST_F(Equivalence, LongTextsAreCutAtACharacterBoundary) {
  WireClient client = connect();
  std::string q = queue();
  for (int i = 0; q.size() + 2 <= 255; ++i) q += "é";
  client.declare_queue(1, q);
  queue::Declare declare = queue_with(q, {});
  declare.durable = true;
  client.send(1, declare);
  const std::string text = client.expect_channel_close(1, 406);
  EXPECT_LE(text.size(), 255u);
  EXPECT_GE(text.size(), 250u);
  const auto last = static_cast<unsigned char>(text[text.size() - 2]);
  EXPECT_TRUE(last == 0xC3 || last < 0x80) << "cut within a character: " << text;
  client.open_channel(1);
  client.delete_queue(1, q);
}

}  // namespace
}  // namespace stoat::test
