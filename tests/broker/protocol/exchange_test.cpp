// Exchanges as objects: declare, delete, bindings between them, alternates.

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

exchange::Declare declaration(std::string_view name, std::string_view type) {
  exchange::Declare declare;
  declare.exchange = name;
  declare.type = type;
  return declare;
}

class Exchanges : public ProtocolTest {
 protected:
  static bool exists(WireClient& client, std::string_view name) {
    exchange::Declare passive = declaration(name, "direct");
    passive.passive = true;
    client.send(1, passive);
    const Frame frame = client.take(1, "exchange.declare-ok or channel.close");
    if (peek_method_id(*frame.payload) == exchange::DeclareOk::kId) return true;
    EXPECT_EQ(decode_method<channel::Close>(*frame.payload)->reply_code, 404) << describe(frame);
    client.send(1, channel::CloseOk{});
    client.open_channel(1);
    return false;
  }
};

TEST_F(Exchanges, PassiveDeclareTellsWhetherItExists) {
  WireClient client = connect();
  const std::string x = exchange();
  EXPECT_FALSE(exists(client, x));
  client.declare_exchange(1, x, "topic");
  // Passive looks at the name alone, whatever type it names.
  EXPECT_TRUE(exists(client, x));
}

TEST_F(Exchanges, NoWaitDeclaresAndDeletesWithoutAnswers) {
  WireClient client = connect();
  const std::string x = exchange();
  exchange::Declare declare = declaration(x, "fanout");
  declare.no_wait = true;
  client.send(1, declare);
  EXPECT_TRUE(exists(client, x));
  client.send(1, exchange::Delete{0, x, false, true});
  EXPECT_FALSE(exists(client, x));
}

TEST_F(Exchanges, NoWaitStillReportsErrors) {
  WireClient client = connect();
  const std::string missing = name("missing");
  exchange::Declare declare = declaration(missing, "fanout");
  declare.passive = true;
  declare.no_wait = true;
  client.send(1, declare);
  client.expect_channel_close(1, 404);
}

TEST_F(Exchanges, IfUnusedKeepsOneThatIsASource) {
  WireClient client = connect();
  const std::string x = exchange(), q = queue();
  client.declare_exchange(1, x, "direct");
  client.declare_queue(1, q);
  client.bind(1, q, x, "k");
  client.send(1, exchange::Delete{0, x, true, false});
  EXPECT_EQ(client.expect_channel_close(1, 406),
            "PRECONDITION_FAILED - exchange '" + x + "' in vhost '/' in use");
  client.open_channel(1);
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "k", {}});
  client.call<exchange::DeleteOk>(1, exchange::Delete{0, x, true, false});
  EXPECT_FALSE(exists(client, x));
}

TEST_F(Exchanges, DeletingAnAbsentOneIsOk) {
  WireClient client = connect();
  client.delete_exchange(1, name("never"));
}

TEST_F(Exchanges, DeleteDropsItsBindings) {
  WireClient client = connect();
  const std::string x = exchange(), q = queue();
  client.declare_queue(1, q);
  client.declare_exchange(1, x, "direct");
  client.bind(1, q, x, "k");
  client.delete_exchange(1, x);
  client.declare_exchange(1, x, "direct");
  client.publish(1, x, "k", "lost", {}, true);
  EXPECT_EQ(client.expect_content<basic::Return>(1).method.reply_code, 312);
}

TEST_F(Exchanges, AutoDeleteGoesWithItsLastBindingAsSource) {
  WireClient client = connect();
  const std::string x = exchange("auto"), source = exchange("source"), q = queue();
  exchange::Declare declare = declaration(x, "direct");
  declare.auto_delete = true;
  client.call<exchange::DeclareOk>(1, declare);
  client.declare_exchange(1, source, "fanout");
  client.declare_queue(1, q);
  EXPECT_TRUE(exists(client, x)) << "it never had a binding, so it stays";

  client.bind(1, q, x, "a");
  client.bind(1, q, x, "b");
  client.bind_exchange(1, x, source, "");
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "a", {}});
  EXPECT_TRUE(exists(client, x));
  client.call<queue::UnbindOk>(1, queue::Unbind{0, q, x, "b", {}});
  EXPECT_FALSE(exists(client, x)) << "a binding that ends at it does not hold it";
}

TEST_F(Exchanges, AutoDeleteGoesWithTheQueueThatHeldIt) {
  WireClient client = connect();
  const std::string x = exchange("auto"), upstream = exchange("upstream"), q = queue();
  for (const std::string& name : {x, upstream}) {
    exchange::Declare declare = declaration(name, "fanout");
    declare.auto_delete = true;
    client.call<exchange::DeclareOk>(1, declare);
  }
  client.declare_queue(1, q);
  client.bind_exchange(1, x, upstream, "");
  client.bind(1, q, x, "");
  client.delete_queue(1, q);
  EXPECT_FALSE(exists(client, x));
  EXPECT_FALSE(exists(client, upstream)) << "its only destination was the other exchange";
}

TEST_F(Exchanges, InternalTakesNoPublishButRoutesWhatIsBoundToIt) {
  WireClient client = connect();
  const std::string internal = exchange("internal"), source = exchange("source"), q = queue();
  exchange::Declare declare = declaration(internal, "fanout");
  declare.internal = true;
  client.call<exchange::DeclareOk>(1, declare);
  client.declare_exchange(1, source, "fanout");
  client.declare_queue(1, q);
  client.bind_exchange(1, internal, source, "");
  client.bind(1, q, internal, "");
  client.publish(1, source, "", "through");
  EXPECT_EQ(bodies(client.drain(1, q)), std::vector{"through"s});
  client.publish(1, internal, "", "direct");
  client.expect_channel_close(1, 403);
}

TEST_F(Exchanges, UnboundExchangesNoLongerRoute) {
  WireClient client = connect();
  const std::string a = exchange("a"), b = exchange("b"), q = queue();
  client.declare_exchange(1, a, "topic");
  client.declare_exchange(1, b, "fanout");
  client.declare_queue(1, q);
  client.bind(1, q, b, "");
  client.bind_exchange(1, b, a, "in.*");
  client.publish(1, a, "in.1", "one");
  client.publish(1, a, "out.1", "not bound");
  client.call<exchange::UnbindOk>(1, exchange::Unbind{0, b, a, "in.*", false, {}});
  client.publish(1, a, "in.2", "two");
  EXPECT_EQ(bodies(client.drain(1, q)), std::vector{"one"s});
  // Absent bindings unbind as well.
  client.call<exchange::UnbindOk>(1, exchange::Unbind{0, b, a, "never", false, {}});
}

// The bindings of a deleted exchange must not come alive when one of the same name is declared.
void expect_no_ghost_binding(WireClient& client, const std::string& source,
                             const std::string& destination, const std::string& queue) {
  exchange::Declare durable = declaration(destination, "fanout");
  durable.durable = true;
  client.bind_exchange(1, destination, source, "");
  client.bind(1, queue, destination, "");
  client.publish(1, source, "", "before", {}, true);
  ASSERT_EQ(bodies(client.drain(1, queue)), std::vector{"before"s});

  client.delete_exchange(1, destination);
  client.call<exchange::DeclareOk>(1, durable);
  client.bind(1, queue, destination, "");
  client.publish(1, source, "", "after", {}, true);
  const Returned returned = client.expect_content<basic::Return>(1);
  EXPECT_EQ(returned.method.reply_code, 312);
  EXPECT_EQ(returned.method.reply_text.text, "NO_ROUTE");
  EXPECT_EQ(returned.body, "after");
  EXPECT_TRUE(client.drain(1, queue).empty());
}

void declare_durable_chain(WireClient& client, const std::string& source,
                           const std::string& destination, const std::string& queue) {
  for (const std::string& name : {source, destination}) {
    exchange::Declare durable = declaration(name, "fanout");
    durable.durable = true;
    client.call<exchange::DeclareOk>(1, durable);
  }
  client.declare_queue(1, queue, {}, true);
}

TEST_F(Exchanges, DeletingADestinationExchangeDropsItsIncomingBindings) {
  WireClient client = connect();
  const std::string source = exchange("source"), destination = exchange("destination");
  const std::string q = queue();
  declare_durable_chain(client, source, destination, q);
  expect_no_ghost_binding(client, source, destination, q);
}

TEST_F(Exchanges, DroppedBindingsOfADestinationStayDroppedAfterARestart) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    declare_durable_chain(client, "source", "destination", "q");
    expect_no_ghost_binding(client, "source", "destination", "q");
  }
  broker.restart();
  WireClient client(broker.port(), ConnectOptions{});
  client.publish(1, "source", "", "after restart", {}, true);
  EXPECT_EQ(client.expect_content<basic::Return>(1).body, "after restart");
  expect_no_ghost_binding(client, "source", "destination", "q");
}

TEST_F(Exchanges, AlternateTakesWhatIsUnroutableAndNothingIsReturned) {
  WireClient client = connect();
  const std::string main = exchange("main"), second = exchange("second"), last = exchange("last");
  const std::string hit = queue("hit"), missed = queue("missed");
  client.declare_exchange(1, last, "fanout");
  client.declare_exchange(1, second, "direct", {{"alternate-exchange", last}});
  client.declare_exchange(1, main, "direct", {{"alternate-exchange", second}});
  client.declare_queue(1, hit);
  client.declare_queue(1, missed);
  client.bind(1, hit, main, "known");
  client.bind(1, missed, last, "");
  client.confirm_select(1);
  client.publish(1, main, "known", "routed", {}, true);
  client.publish(1, main, "unknown", "alternate", {}, true);
  EXPECT_EQ(client.collect_confirms(1, 2), (std::vector{true, true})) << "and no basic.return";
  EXPECT_EQ(bodies(client.drain(1, hit)), std::vector{"routed"s});
  const auto messages = client.drain(1, missed);
  ASSERT_EQ(bodies(messages), std::vector{"alternate"s});
  EXPECT_EQ(messages[0].method.exchange.text, main) << "the exchange it was published to";
  EXPECT_EQ(messages[0].method.routing_key.text, "unknown");
}

TEST_F(Exchanges, AlternateThatIsMissingOrACycleReturnsTheMessage) {
  WireClient client = connect();
  const std::string a = exchange("a"), b = exchange("b"), lonely = exchange("lonely");
  client.declare_exchange(1, a, "direct", {{"alternate-exchange", b}});
  client.declare_exchange(1, b, "direct", {{"alternate-exchange", a}});
  client.declare_exchange(1, lonely, "direct", {{"alternate-exchange", name("nowhere")}});
  for (const std::string& x : {a, lonely}) {
    client.publish(1, x, "k", "body", {}, true);
    EXPECT_EQ(client.expect_content<basic::Return>(1).method.exchange.text, x);
  }
}

TEST_F(Exchanges, SharedBetweenConnectionsAndChannels) {
  WireClient one = connect(), two = connect();
  const std::string x = exchange(), q = queue();
  one.declare_exchange(1, x, "direct");
  one.open_channel(2);
  one.declare_queue(2, q);
  two.bind(1, q, x, "k");
  one.publish(1, x, "k", "seen at once");
  EXPECT_EQ(bodies(one.drain(1, q)), std::vector{"seen at once"s});
  two.delete_exchange(1, x);
  one.publish(2, x, "k", "gone");
  one.expect_channel_close(2, 404);
}

}  // namespace
}  // namespace stoat::test
