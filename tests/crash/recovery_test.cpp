// What a start after kill -9 finds: topology, acknowledgements, redelivered flags, half messages.

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;           // NOLINT: tests are all AMQP names
using namespace std::literals;  // NOLINT

class Recovery : public testing::Test {
 protected:
  WireClient connect() { return WireClient(broker_.port(), ConnectOptions{}); }
  void kill_and_start() {
    broker_.kill9();
    broker_.start();
  }
  static bool exists(WireClient& client, std::string_view queue) {
    client.send(1, queue::Declare{0, queue, true, false, false, false, false, {}});
    const Frame frame = client.take(1, "declare-ok or close");
    if (peek_method_id(*frame.payload) == queue::DeclareOk::kId) return true;
    client.send(1, channel::CloseOk{});
    client.open_channel(1);
    return false;
  }

  BrokerProcess broker_;
};

TEST_F(Recovery, DurableTopologyStaysAndTheRestGoes) {
  const Table arguments{{"x-max-length", 1000}, {"x-note", Table{{"nested", Array{1, "two"}}}}};
  {
    WireClient client = connect();
    client.declare_queue(1, "durable", arguments, true);
    client.declare_queue(1, "transient");
    client.declare_queue(1, "deleted", {}, true);
    for (const bool durable : {true, false}) {
      const std::string x = durable ? "x.durable" : "x.transient";
      client.call<exchange::DeclareOk>(
          1, exchange::Declare{0, x, "topic", false, durable, false, false, false, {}});
      client.bind(1, "durable", x, "kept.*", {{"n", 1}});
      client.bind(1, "durable", x, "unbound.*");
    }
    client.call<exchange::DeclareOk>(
        1, exchange::Declare{0, "x.up", "fanout", false, true, false, false, false, {}});
    client.bind_exchange(1, "x.durable", "x.up", "");
    client.call<queue::UnbindOk>(1, queue::Unbind{0, "durable", "x.durable", "unbound.*", {}});
    client.delete_queue(1, "deleted");
  }
  for (int round = 0; round < 2; ++round) {
    kill_and_start();
    WireClient client = connect();
    EXPECT_FALSE(exists(client, "transient"));
    EXPECT_FALSE(exists(client, "deleted"));
    client.declare_queue(1, "durable", arguments, true);  // equivalent to what came back
    client.publish(1, "x.up", "kept.1", "through two exchanges");
    client.publish(1, "x.durable", "unbound.1", "m");
    const auto messages = client.drain(1, "durable");
    ASSERT_EQ(bodies(messages), std::vector{"through two exchanges"s});
    client.publish(1, "x.transient", "kept.1", "m");
    client.expect_channel_close(1, 404);
  }
}

TEST_F(Recovery, ADurableExclusiveQueueIsGoneWithItsBindings) {
  {
    WireClient client = connect();
    client.call<exchange::DeclareOk>(
        1, exchange::Declare{0, "x", "direct", false, true, false, false, false, {}});
    client.call<queue::DeclareOk>(1,
                                  queue::Declare{0, "mine", false, true, true, false, false, {}});
    client.bind(1, "mine", "x", "k");
    client.confirm_select(1);
    Properties persistent;
    persistent.delivery_mode = 2;
    client.publish(1, "x", "k", "m", persistent);
    client.collect_confirms(1, 1);
    kill_and_start();
  }
  WireClient other = connect();
  EXPECT_FALSE(exists(other, "mine"));
  other.publish(1, "x", "k", "unroutable", {}, true);
  EXPECT_EQ(other.expect_content<basic::Return>(1).method.reply_code, 312);
  EXPECT_EQ(other.declare_queue(1, "mine", {}, true).message_count, 0u);
  other.publish(1, "x", "k", "still unroutable", {}, true);
  other.expect_content<basic::Return>(1);
}

TEST_F(Recovery, DeliveredMessagesComeBackAsRedelivered) {
  {
    WireClient client = connect();
    client.declare_queue(1, "q", {}, true);
    ConfirmedPublisher({"", "q"}, 0).publish(broker_.port(), 10);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.get(1, "q", false));
    kill_and_start();
  }
  ConfirmedPublisher({"", "q"}, 10).publish(broker_.port(), 1);
  WireClient client = connect();
  const auto messages = take_all(client, "q");
  ASSERT_EQ(messages.size(), 11u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(messages[static_cast<std::size_t>(i)].method.redelivered);
  // Those between may be marked: the broker notes in steps how far it has delivered.
  EXPECT_FALSE(messages[10].method.redelivered) << "it did not exist before the kill";
}

TEST_F(Recovery, AcknowledgedMessagesStayGone) {
  constexpr std::uint64_t kCount = 5000;
  {
    WireClient client = connect();
    client.declare_queue(1, "q", {}, true);
  }
  ConfirmedPublisher({"", "q"}, 0).publish(broker_.port(), kCount);
  {
    WireClient client = connect();
    client.consume(1, "q");
    for (std::uint64_t id = 0; id < kCount; ++id) {
      const Delivery message = client.expect_delivery(1);
      ASSERT_EQ(ConfirmedPublisher::id_of(message.body), id);
      if (id % 2 == 0) client.ack(1, message.method.delivery_tag);
    }
    client.qos(1, 1);  // the acks before it have been taken
    std::this_thread::sleep_for(300ms);
    kill_and_start();
  }
  std::uint32_t ready = 0;
  {
    WireClient client = connect();
    ready = client.ready_count(1, "q");
  }
  kill_and_start();  // a second time changes nothing
  WireClient client = connect();
  EXPECT_EQ(client.ready_count(1, "q"), ready);
  const auto messages = take_all(client, "q");
  const auto ids = ids_of(messages);
  std::set<std::uint64_t> left(ids.begin(), ids.end());
  EXPECT_EQ(left.size(), ids.size()) << "one came twice";
  for (std::uint64_t id = 1; id < kCount; id += 2) {
    ASSERT_EQ(left.erase(id), 1u) << id << " was never acknowledged, and is missing";
  }
  // Of the acknowledged ones at most the last group may have been lost, so what returned is the end
  // of the acks, marked as redelivered.
  for (const Delivery& message : messages) EXPECT_TRUE(message.method.redelivered);
  std::uint64_t expected = kCount - 2 * left.size();
  for (const std::uint64_t id : left) {
    EXPECT_EQ(id, expected) << "an acknowledged message returned, though later acks were kept";
    expected += 2;
  }
}

TEST_F(Recovery, APublisherThatDiesWithinAMessageLeavesNothing) {
  {
    WireClient client = connect();
    client.declare_queue(1, "q", {}, true);
  }
  Properties persistent;
  persistent.delivery_mode = 2;
  for (int i = 0; i < 20; ++i) {
    WireClient dying = connect();
    dying.send(1, basic::Publish{0, "", "q", false, false});
    std::string out;
    append_content_header(out, ChannelNumber(1), 1 << 20, persistent.encode());
    if (i % 2 == 0) append_body(out, ChannelNumber(1), std::string(300 * 1024, 'b'), 131072);
    dying.send_raw(out);
    dying.open_channel(2);  // so that it has been read
    dying.socket().reset();
  }
  ConfirmedPublisher({"", "q"}, 7).publish(broker_.port(), 1, [](auto) { return 1 << 20; });
  for (int round = 0; round < 2; ++round) {
    WireClient client = connect();
    EXPECT_EQ(client.ready_count(1, "q"), 1u);
    kill_and_start();
  }
  WireClient client = connect();
  const auto messages = take_all(client, "q");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].body.size(), std::size_t{1} << 20);
  EXPECT_EQ(ConfirmedPublisher::id_of(messages[0].body), 7u);
}

TEST_F(Recovery, PurgedAndDeletedQueuesStayEmpty) {
  {
    WireClient client = connect();
    for (const char* q : {"purged", "deleted", "again"}) {
      client.declare_queue(1, q, {}, true);
      ConfirmedPublisher({"", q}, 0).publish(broker_.port(), 200);
    }
    client.call<queue::PurgeOk>(1, queue::Purge{0, "purged", false});
    client.delete_queue(1, "deleted");
    client.delete_queue(1, "again");
    client.declare_queue(1, "again", {}, true);
    // A confirm behind them: what was settled before it is on disk with it.
    ConfirmedPublisher({"", "purged"}, 500).publish(broker_.port(), 1);
    ConfirmedPublisher({"", "again"}, 500).publish(broker_.port(), 1);
    kill_and_start();
  }
  WireClient client = connect();
  EXPECT_FALSE(exists(client, "deleted"));
  EXPECT_EQ(ids_of(take_all(client, "purged")), std::vector<std::uint64_t>{500});
  EXPECT_EQ(ids_of(take_all(client, "again")), std::vector<std::uint64_t>{500});
}

}  // namespace
}  // namespace stoat::test
