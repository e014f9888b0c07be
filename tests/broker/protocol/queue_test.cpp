// Queues as objects: names, counts, life times, the conditions of delete.

#include <set>

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

queue::Declare declaration(std::string_view name) {
  queue::Declare declare;
  declare.queue = name;
  return declare;
}

class Queues : public ProtocolTest {};

TEST_F(Queues, DeclareOkTellsNameMessagesAndConsumers) {
  WireClient client = connect();
  const std::string q = queue();
  const auto first = client.declare_queue(1, q);
  EXPECT_EQ(first.queue.text, q);
  EXPECT_EQ(first.message_count, 0u);
  EXPECT_EQ(first.consumer_count, 0u);
  client.confirm_select(1);
  for (int i = 0; i < 3; ++i) client.publish(1, "", q, "m");
  client.collect_confirms(1, 3);
  EXPECT_EQ(client.declare_queue(1, q).message_count, 3u);

  client.qos(1, 2);
  client.consume(1, q, "tag");
  client.expect_delivery(1);
  client.expect_delivery(1);
  const auto with_consumer = client.declare_queue(1, q);
  EXPECT_EQ(with_consumer.message_count, 1u) << "what is unacknowledged is not ready";
  EXPECT_EQ(with_consumer.consumer_count, 1u);
}

TEST_F(Queues, AMethodSeesTheMessagesPublishedBeforeItOnItsChannel) {
  STOAT_OWN_CHOICE("declare, purge and delete come after the publishes before them");
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    client.publish(1, "", q, "m");
    ASSERT_EQ(client.declare_queue(1, q).message_count, i);
  }
  client.publish(1, "", q, "m");
  EXPECT_EQ(client.call<queue::PurgeOk>(1, queue::Purge{0, q, false}).message_count, 21u);
  client.publish(1, "", q, "m");
  EXPECT_EQ(client.delete_queue(1, q), 1u);
}

TEST_F(Queues, TheBrokerInventsUniqueNames) {
  WireClient client = connect();
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) {
    queue::Declare declare = declaration("");
    declare.exclusive = true;
    names.insert(client.call<queue::DeclareOk>(1, declare).queue.str());
  }
  EXPECT_EQ(names.size(), 50u);
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with("amq.gen-")) << name;
    client.publish(1, "", name, "reached");
    EXPECT_EQ(client.drain(1, name).size(), 1u);
  }
  EXPECT_EQ(client.ready_count(1, *names.begin()), 0u);
}

TEST_F(Queues, AnEmptyNameIsTheLastOneDeclaredOnTheChannel) {
  WireClient client = connect();
  const std::string first = queue("first"), last = queue("last"), x = exchange();
  client.declare_exchange(1, x, "direct");
  client.declare_queue(1, first);
  client.declare_queue(1, last);
  client.bind(1, "", x, "");  // the key too is then the queue's name
  client.publish(1, x, last, "bound");
  EXPECT_EQ(client.get(1, "")->body, "bound");
  client.publish(1, "", last, "one");
  EXPECT_EQ(client.call<queue::PurgeOk>(1, queue::Purge{0, "", false}).message_count, 1u);
  client.publish(1, "", last, "two");
  client.consume(1, "", "tag", true);
  EXPECT_EQ(client.expect_delivery(1).body, "two");
  client.cancel(1, "tag");
  client.call<queue::UnbindOk>(1, queue::Unbind{0, "", x, last, {}});
  EXPECT_EQ(client.ready_count(1, first), 0u);
  client.declare_queue(1, last);
  client.delete_queue(1, "");
  EXPECT_FALSE(queue_exists(client, last));
}

TEST_F(Queues, AnEmptyNameWithNothingDeclaredIsNotFound) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  client.open_channel(2);  // the last declared queue is the channel's own
  client.send(2, basic::Get{0, "", true});
  client.expect_channel_close(2, 404);
  client.open_channel(2);
  client.send(2, basic::Consume{0, "", "", false, true, false, false, {}});
  client.expect_channel_close(2, 404);
  client.open_channel(2);
  client.send(2, queue::Purge{0, "", false});
  client.expect_channel_close(2, 404);
}

TEST_F(Queues, PassiveDeclareOfAMissingOneIsNotFound) {
  WireClient client = connect();
  const std::string missing = name("missing");
  queue::Declare declare = declaration(missing);
  declare.passive = true;
  for (const bool no_wait : {false, true}) {  // errors come in spite of no_wait
    declare.no_wait = no_wait;
    client.send(1, declare);
    EXPECT_EQ(client.expect_channel_close(1, 404),
              "NOT_FOUND - no queue '" + missing + "' in vhost '/'");
    client.open_channel(1);
  }
}

TEST_F(Queues, NoWaitGetsNoAnswers) {
  WireClient client = connect();
  const std::string q = queue(), x = exchange();
  client.declare_exchange(1, x, "fanout");
  queue::Declare declare = declaration(q);
  declare.no_wait = true;
  client.send(1, declare);
  client.send(1, queue::Bind{0, q, x, "", true, {}});
  client.publish(1, x, "", "purged");
  client.send(1, queue::Purge{0, q, true});
  client.publish(1, x, "", "kept");
  client.send(1, basic::Consume{0, q, "tag", false, true, false, true, {}});
  EXPECT_EQ(client.expect_delivery(1).body, "kept");
  client.send(1, basic::Cancel{"tag", true});
  client.send(1, queue::Delete{0, q, false, false, true});
  EXPECT_FALSE(queue_exists(client, q));
}

TEST_F(Queues, PurgeDropsWhatIsReadyAndLeavesWhatIsUnacknowledged) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  for (int i = 0; i < 10; ++i) client.publish(1, "", q, std::to_string(i));
  const auto held = client.get(1, q, false);
  EXPECT_EQ(client.call<queue::PurgeOk>(1, queue::Purge{0, q, false}).message_count, 9u);
  EXPECT_FALSE(client.get(1, q));
  client.reject(1, held->method.delivery_tag, true);
  EXPECT_EQ(bodies(client.drain(1, q)), std::vector{"0"s});
}

TEST_F(Queues, DeleteCountsMessagesAndIsOkForAbsentOnes) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  for (int i = 0; i < 4; ++i) client.publish(1, "", q, "m");
  EXPECT_EQ(client.delete_queue(1, q), 4u);
  EXPECT_EQ(client.delete_queue(1, q), 0u);
  client.publish(1, "", q, "to nobody", {}, true);
  EXPECT_EQ(client.expect_content<basic::Return>(1).method.reply_code, 312);
}

TEST_F(Queues, DeleteIfUnusedAndIfEmptyRefuse) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  client.publish(1, "", q, "m");
  client.send(1, queue::Delete{0, q, false, true, false});
  EXPECT_EQ(client.expect_channel_close(1, 406),
            "PRECONDITION_FAILED - queue '" + q + "' in vhost '/' not empty");
  client.open_channel(1);
  client.open_channel(2);
  client.consume(2, q, "user", true);
  client.expect_delivery(2);
  client.send(1, queue::Delete{0, q, true, false, false});
  EXPECT_EQ(client.expect_channel_close(1, 406),
            "PRECONDITION_FAILED - queue '" + q + "' in vhost '/' in use");
  client.open_channel(1);
  client.cancel(2, "user");
  EXPECT_EQ(client.call<queue::DeleteOk>(1, queue::Delete{0, q, true, true, false}).message_count,
            0u);
}

TEST_F(Queues, ARecreatedQueueIsEmptyAndUnbound) {
  WireClient client = connect();
  const std::string q = queue(), x = exchange();
  client.declare_exchange(1, x, "fanout");
  client.declare_queue(1, q, {}, true);
  client.bind(1, q, x, "");
  client.publish(1, x, "", "old");
  client.delete_queue(1, q);
  EXPECT_EQ(client.declare_queue(1, q, {}, true).message_count, 0u);
  client.publish(1, x, "", "unbound", {}, true);
  client.expect_content<basic::Return>(1);
  EXPECT_TRUE(client.drain(1, q).empty());
}

TEST_F(Queues, AutoDeleteGoesAfterItsLastConsumer) {
  WireClient client = connect();
  const std::string q = queue();
  queue::Declare declare = declaration(q);
  declare.auto_delete = true;
  client.call<queue::DeclareOk>(1, declare);
  client.publish(1, "", q, "m");
  ASSERT_EQ(client.drain(1, q).size(), 1u);
  EXPECT_TRUE(queue_exists(client, q)) << "it never had a consumer, so it stays";
  client.consume(1, q, "a");
  client.consume(1, q, "b");
  client.cancel(1, "a");
  EXPECT_TRUE(queue_exists(client, q));
  client.cancel(1, "b");
  EXPECT_TRUE(eventually([&] { return !queue_exists(client, q); }));
}

TEST_F(Queues, AutoDeleteGoesWithTheChannelOrConnectionOfItsConsumer) {
  WireClient client = connect(), other = connect();
  for (const bool whole_connection : {false, true}) {
    const std::string q = queue(whole_connection ? "connection" : "channel");
    queue::Declare declare = declaration(q);
    declare.auto_delete = true;
    other.call<queue::DeclareOk>(1, declare);
    other.open_channel(2);
    other.consume(2, q, "tag");
    if (whole_connection) {
      other.socket().reset();
    } else {
      other.close_channel(2);
    }
    EXPECT_TRUE(eventually([&] { return !queue_exists(client, q); })) << q;
  }
}

TEST_F(Queues, ADeclareThatRacesWithAutoDeleteFindsAQueueThatWorks) {
  STOAT_OWN_CHOICE("answers on a channel come in the order of their methods");
  WireClient client = connect();
  const std::string q = queue();
  queue::Declare declare = declaration(q);
  declare.auto_delete = true;
  for (int i = 0; i < 50; ++i) {
    // All in one write: the declare arrives while the queue is going away.
    client.call<queue::DeclareOk>(1, declare);
    client.consume(1, q, "tag");
    client.send(1, basic::Cancel{"tag", false});
    client.send(1, declare);
    client.expect<basic::CancelOk>(1);
    client.expect<queue::DeclareOk>(1);
    client.publish(1, "", q, "m", {}, true);
    ASSERT_EQ(client.drain(1, q).size(), 1u) << "round " << i;
    client.delete_queue(1, q);
  }
}

TEST_F(Queues, ExclusiveGoesWithItsConnectionBeforeCloseOk) {
  WireClient client = connect();
  const std::string q = queue();
  for (int i = 0; i < 20; ++i) {
    WireClient owner = connect();
    queue::Declare declare = declaration(q);
    declare.exclusive = true;
    owner.call<queue::DeclareOk>(1, declare);
    owner.publish(1, "", q, "m");
    owner.call<connection::CloseOk>(0, connection::Close{kReplySuccess, "", 0, 0});
    ASSERT_FALSE(queue_exists(client, q));
  }
}

TEST_F(Queues, ExclusiveGoesWithABrokenConnection) {
  WireClient client = connect(), owner = connect();
  const std::string q = queue();
  queue::Declare declare = declaration(q);
  declare.exclusive = true;
  owner.call<queue::DeclareOk>(1, declare);
  owner.open_channel(2);
  owner.publish(2, "", q, "usable on every channel of its connection");
  EXPECT_EQ(owner.drain(2, q).size(), 1u);
  owner.socket().reset();
  const auto redeclare = [&] {  // 405 while it is still held
    client.send(1, declaration(q));
    const Frame frame = client.take(1, "declare-ok or close");
    if (peek_method_id(*frame.payload) == queue::DeclareOk::kId) return true;
    client.send(1, channel::CloseOk{});
    client.open_channel(1);
    return false;
  };
  EXPECT_TRUE(eventually(redeclare));
}

TEST_F(Queues, LongNamesAndUtf8NamesWork) {
  WireClient client = connect();
  const std::string longest(255, 'n');
  const std::string utf8 = name("Größe-кролик-兎");
  for (const std::string& q : {longest, utf8}) {
    EXPECT_EQ(client.declare_queue(1, q).queue.text, q);
    client.publish(1, "", q, "m");
    EXPECT_EQ(client.drain(1, q).size(), 1u);
    client.delete_queue(1, q);
  }
}

}  // namespace
}  // namespace stoat::test
