// Which queues a message reaches: exchange types, wildcards, overlapping bindings, CC and BCC.

#include <algorithm>
#include <map>

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Routing : public ProtocolTest {
 protected:
  // Bodies are the routing keys, so that what arrives tells what matched.
  void publish_keys(WireClient& client, std::string_view exchange,
                    const std::vector<std::string>& keys) {
    for (const std::string& key : keys) client.publish(1, exchange, key, key);
  }
  using Keys = std::vector<std::string>;
};

TEST_F(Routing, HashMatchesZeroWordsAnywhereAndStarExactlyOne) {
  WireClient client = connect();
  const std::string x = exchange();
  client.declare_exchange(1, x, "topic");
  const std::string middle = queue("a.*.c.#"), two = queue("a.*"), tail = queue("#.z");
  const std::string both = queue("a.#.z.#"), all = queue("#"), empty_word = queue("*.*");
  const std::string twice = queue("#.#.b");
  for (const std::string& q : {middle, two, tail, both, all, empty_word, twice})
    client.declare_queue(1, q);
  client.bind(1, middle, x, "a.*.c.#");
  client.bind(1, two, x, "a.*");
  client.bind(1, tail, x, "#.z");
  client.bind(1, both, x, "a.#.z.#");
  client.bind(1, all, x, "#");
  client.bind(1, empty_word, x, "*.*");
  client.bind(1, twice, x, "#.#.b");

  publish_keys(client, x, {"a.b.c", "a.b.c.d", "a.b", "a", "z", "x.y.z", "a.z", "a..z.b", "", "."});

  EXPECT_EQ(bodies(client.drain(1, middle)), (Keys{"a.b.c", "a.b.c.d"}));
  EXPECT_EQ(bodies(client.drain(1, two)), (Keys{"a.b", "a.z"}));
  EXPECT_EQ(bodies(client.drain(1, tail)), (Keys{"z", "x.y.z", "a.z"}));
  EXPECT_EQ(bodies(client.drain(1, both)), (Keys{"a.z", "a..z.b"}));
  EXPECT_EQ(client.drain(1, all).size(), 10u);
  EXPECT_EQ(bodies(client.drain(1, empty_word)), (Keys{"a.b", "a.z", "."}));
  EXPECT_EQ(bodies(client.drain(1, twice)), (Keys{"a.b", "a..z.b"}));
}

TEST_F(Routing, TopicWildcardsAreWholeWordsOnly) {
  WireClient client = connect();
  const std::string x = exchange(), q = queue();
  client.declare_exchange(1, x, "topic");
  client.declare_queue(1, q);
  client.bind(1, q, x, "a*.b#.c");
  publish_keys(client, x, {"ax.b.c", "a*.b#.c", "a.b.c"});
  EXPECT_EQ(bodies(client.drain(1, q)), (Keys{"a*.b#.c"}));
}

TEST_F(Routing, DirectMatchesTheWholeKeyAndFanoutAny) {
  WireClient client = connect();
  const std::string direct = exchange("direct"), fanout = exchange("fanout");
  client.declare_exchange(1, direct, "direct");
  client.declare_exchange(1, fanout, "fanout");
  const std::string a = queue("a"), b = queue("b");
  client.declare_queue(1, a);
  client.declare_queue(1, b);
  client.bind(1, a, direct, "key");
  client.bind(1, b, direct, "key");
  client.bind(1, b, direct, "other");
  client.bind(1, a, fanout, "ignored");
  client.bind(1, b, fanout, "");

  publish_keys(client, direct, {"key", "KEY", "key.", "other", "#"});
  EXPECT_EQ(bodies(client.drain(1, a)), (Keys{"key"}));
  EXPECT_EQ(bodies(client.drain(1, b)), (Keys{"key", "other"}));
  publish_keys(client, fanout, {"anything", ""});
  EXPECT_EQ(bodies(client.drain(1, a)), (Keys{"anything", ""}));
  EXPECT_EQ(bodies(client.drain(1, b)), (Keys{"anything", ""}));
}

TEST_F(Routing, DefaultExchangeReachesEveryQueueByItsName) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  client.publish(1, "", q, "by name");
  client.publish(1, "", q + "x", "nobody");
  const auto messages = client.drain(1, q);
  ASSERT_EQ(bodies(messages), (Keys{"by name"}));
  EXPECT_EQ(messages[0].method.exchange.text, "");
  EXPECT_EQ(messages[0].method.routing_key.text, q);
}

TEST_F(Routing, PredeclaredExchangesRouteByTheirType) {
  WireClient client = connect();
  const std::string q = queue(), key = name("key");
  client.declare_queue(1, q);
  client.bind(1, q, "amq.direct", key);
  client.bind(1, q, "amq.topic", key + ".*");
  client.bind(1, q, "amq.fanout", "");
  client.bind(1, q, "amq.headers", "", {{"x-match", "all"}, {"id", key}});
  client.bind(1, q, "amq.match", "", {{"x-match", "all"}, {"id", key}});
  Properties with_id;
  with_id.headers = Table{{"id", key}};

  client.publish(1, "amq.direct", key, "direct");
  client.publish(1, "amq.topic", key + ".w", "topic");
  client.publish(1, "amq.fanout", "any", "fanout");
  client.publish(1, "amq.headers", "any", "headers", with_id);
  client.publish(1, "amq.match", "any", "match", with_id);
  EXPECT_EQ(bodies(client.drain(1, q)), (Keys{"direct", "topic", "fanout", "headers", "match"}));
}

TEST_F(Routing, OverlappingBindingsAndTwoPathsAndACycleDeliverOneCopy) {
  WireClient client = connect();
  const std::string x = exchange("x"), a = exchange("a"), b = exchange("b"), q = queue();
  client.declare_exchange(1, x, "topic");
  client.declare_exchange(1, a, "fanout");
  client.declare_exchange(1, b, "topic");
  client.declare_queue(1, q);
  client.bind_exchange(1, a, x, "#");
  client.bind_exchange(1, b, x, "k.#");
  client.bind_exchange(1, x, b, "#");  // the cycle
  client.bind(1, q, a, "");
  client.bind(1, q, b, "*");
  client.bind(1, q, x, "k");
  client.bind(1, q, x, "#");
  client.confirm_select(1);
  client.publish(1, x, "k", "once", {}, true);
  // An ack and nothing before it: the message was not returned.
  EXPECT_FALSE(client.expect_confirm(1).nack);
  EXPECT_EQ(bodies(client.drain(1, q)), (Keys{"once"}));
}

TEST_F(Routing, CcAndBccAddRoutingKeysAndBccIsHidden) {
  WireClient client = connect();
  const std::string a = queue("a"), b = queue("b"), c = queue("c");
  for (const std::string& q : {a, b, c}) client.declare_queue(1, q);
  Properties properties;
  properties.headers = Table{{"CC", Array{b, a}}, {"BCC", Array{c}}, {"kept", 7}};
  client.publish(1, "", a, "copy", properties);

  for (const std::string& q : {a, b, c}) {
    const auto messages = client.drain(1, q);
    ASSERT_EQ(messages.size(), 1u) << q;
    EXPECT_EQ(messages[0].method.routing_key.text, a);
    const Table headers = messages[0].properties().headers.value();
    EXPECT_NE(headers.find("CC"), nullptr);
    EXPECT_NE(headers.find("kept"), nullptr);
    EXPECT_EQ(headers.find("BCC"), nullptr) << "BCC must not be shown to " << q;
  }
}

TEST_F(Routing, CcReachesThroughANamedExchange) {
  WireClient client = connect();
  const std::string x = exchange(), a = queue("a"), b = queue("b");
  client.declare_exchange(1, x, "topic");
  client.declare_queue(1, a);
  client.declare_queue(1, b);
  client.bind(1, a, x, "one.*");
  client.bind(1, b, x, "two.*");
  Properties properties;
  properties.headers = Table{{"CC", Array{"two.x"}}};
  client.publish(1, x, "none", "copied", properties);
  EXPECT_TRUE(client.drain(1, a).empty());
  EXPECT_EQ(bodies(client.drain(1, b)), (Keys{"copied"}));
}

TEST_F(Routing, AMessageToManyQueuesKeepsItsOrderInEach) {
  WireClient client = connect();
  const std::string x = exchange();
  client.declare_exchange(1, x, "fanout");
  std::vector<std::string> queues;
  for (int i = 0; i < 12; ++i) {
    queues.push_back(queue(std::to_string(i)));
    client.declare_queue(1, queues.back());
    client.bind(1, queues.back(), x, "");
  }
  Keys sent;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(std::to_string(i));
    client.publish(1, x, "", sent.back());
  }
  for (const std::string& q : queues) EXPECT_EQ(bodies(client.drain(1, q)), sent) << q;
}

TEST_F(Routing, UnbindStopsExactlyThatBinding) {
  WireClient client = connect();
  const std::string x = exchange(), q = queue();
  client.declare_exchange(1, x, "topic");
  client.declare_queue(1, q);
  client.bind(1, q, x, "a.*");
  client.bind(1, q, x, "*.b");
  client.bind(1, q, x, "a.*");  // bound already: once more changes nothing
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "a.*", {}});
  publish_keys(client, x, {"a.x", "a.b", "x.b"});
  EXPECT_EQ(bodies(client.drain(1, q)), (Keys{"a.b", "x.b"}));
  // Absent bindings unbind as well.
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "never", {}});
}

TEST_F(Routing, BindingsThatDifferOnlyInArgumentsAreTwo) {
  WireClient client = connect();
  const std::string x = exchange(), q = queue();
  client.declare_exchange(1, x, "direct");
  client.declare_queue(1, q);
  client.bind(1, q, x, "k", {{"n", 1}});
  client.bind(1, q, x, "k", {{"n", 2}});
  client.publish(1, x, "k", "first");
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "k", {{"n", 1}}});
  client.publish(1, x, "k", "second");
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "k", {{"n", 2}}});
  client.publish(1, x, "k", "third");
  EXPECT_EQ(bodies(client.drain(1, q)), (Keys{"first", "second"}));
}

}  // namespace
}  // namespace stoat::test
