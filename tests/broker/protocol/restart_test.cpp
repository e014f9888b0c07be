// What survives a clean stop and start, and what the clients are told.

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

class Restart : public ProtocolTest {
 protected:
  void SetUp() override {
    STOAT_NEEDS_OWN_BROKER();
    broker_.emplace();
    client_.emplace(broker_->port(), ConnectOptions{});
  }
  void TearDown() override {}  // the shared broker was not used

  void restart() {
    client_.reset();
    broker_->restart();
    client_.emplace(broker_->port(), ConnectOptions{});
  }
  void publish(std::string_view queue, const std::vector<std::string>& all,
               bool persistent = true) {
    Properties properties;
    properties.delivery_mode = persistent ? 2 : 1;
    client_->open_channel(9);
    client_->confirm_select(9);
    for (const std::string& body : all) client_->publish(9, "", queue, body, properties);
    client_->collect_confirms(9, all.size());
    client_->close_channel(9);
  }

  std::optional<TestBroker> broker_;
  std::optional<WireClient> client_;
};

TEST_F(Restart, ClientsAreToldThatTheBrokerGoes) {
  WireClient idle(broker_->port(), ConnectOptions{});
  broker_->restart();
  EXPECT_EQ(idle.expect_connection_close(320),
            "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'");
}

TEST_F(Restart, DurableThingsStayAndTransientOnesGo) {
  client_->declare_queue(1, "durable", {{"x-max-length", 100}}, true);
  client_->declare_queue(1, "transient");
  client_->call<queue::DeclareOk>(
      1, queue::Declare{0, "exclusive", false, true, true, false, false, {}});
  for (const bool durable : {true, false}) {
    const std::string x = durable ? "x.durable" : "x.transient";
    client_->call<exchange::DeclareOk>(
        1, exchange::Declare{0, x, "topic", false, durable, false, false, false, {}});
    client_->bind(1, "durable", x, "a.#", {{"n", 1}});
  }
  client_->bind(1, "transient", "x.durable", "#");
  publish("durable", {"kept"});
  publish("transient", {"lost"});
  restart();

  EXPECT_FALSE(queue_exists(*client_, "transient"));
  EXPECT_FALSE(queue_exists(*client_, "exclusive"));
  EXPECT_EQ(client_->declare_queue(1, "durable", {{"x-max-length", 100}}, true).message_count, 1u);
  EXPECT_EQ(client_->get(1, "durable")->body, "kept");
  client_->publish(1, "x.durable", "a.b", "through the binding that stayed");
  EXPECT_TRUE(client_->get(1, "durable"));
  client_->publish(1, "x.transient", "a.b", "m");
  client_->expect_channel_close(1, 404);
}

TEST_F(Restart, PersistentMessagesStayInOrderAndTransientOnesGo) {
  client_->declare_queue(1, "q", {}, true);
  std::vector<std::string> kept;
  for (int i = 0; i < 500; ++i) {
    const std::string body = std::to_string(i) + std::string(static_cast<std::size_t>(i), '.');
    kept.push_back(body);
  }
  publish("q", kept);
  publish("q", {"transient"}, false);
  restart();
  const auto messages = client_->drain(1, "q");
  EXPECT_TRUE(bodies(messages) == kept) << messages.size() << " came";
  for (const Gotten& message : messages)
    ASSERT_FALSE(message.method.redelivered) << "never delivered before";
}

TEST_F(Restart, AcknowledgedMessagesStayGoneAndDeliveredOnesAreRedelivered) {
  client_->declare_queue(1, "q", {}, true);
  publish("q", {"1", "2", "3", "4", "5", "6"});
  for (int i = 0; i < 4; ++i) client_->get(1, "q", false);
  client_->ack(1, 1);
  client_->ack(1, 3);
  client_->qos(1, 0);  // the acks before it have been taken
  restart();
  std::vector<std::string> left;
  for (const Gotten& message : client_->drain(1, "q"))
    left.push_back(message.body + (message.method.redelivered ? "*" : ""));
  EXPECT_EQ(left, (std::vector{"2*"s, "4*"s, "5"s, "6"s}));
  restart();
  EXPECT_TRUE(client_->drain(1, "q").empty());
}

TEST_F(Restart, PurgedAndDeletedThingsStayGone) {
  client_->declare_queue(1, "purged", {}, true);
  client_->declare_queue(1, "deleted", {}, true);
  client_->declare_queue(1, "again", {}, true);
  for (const char* q : {"purged", "deleted", "again"}) publish(q, {"old", "old"});
  client_->call<queue::PurgeOk>(1, queue::Purge{0, "purged", false});
  client_->delete_queue(1, "deleted");
  client_->delete_queue(1, "again");
  client_->declare_queue(1, "again", {}, true);
  publish("again", {"new"});
  publish("purged", {"after"});
  restart();
  EXPECT_FALSE(queue_exists(*client_, "deleted"));
  EXPECT_EQ(bodies(client_->drain(1, "again")), std::vector{"new"s});
  EXPECT_EQ(bodies(client_->drain(1, "purged")), std::vector{"after"s});
}

TEST_F(Restart, ContentComesBackByteForByte) {
  client_->declare_queue(1, "q", {}, true);
  Properties properties;
  properties.delivery_mode = 2;
  properties.headers = Table{{"nested", Table{{"a", Array{1, 2.5, Void{}, Decimal{2, 314}}}}}};
  properties.timestamp = 1'700'000'000;
  std::string body(3 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); i += 31) body[i] = static_cast<char>(i * 7);
  client_->confirm_select(1);
  client_->publish(1, "", "q", body, properties);
  client_->publish(1, "", "q", "", properties);
  client_->collect_confirms(1, 2);
  restart();
  const auto message = client_->get(1, "q");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->raw_properties, properties.encode());
  EXPECT_TRUE(message->body == body);
  EXPECT_EQ(message->method.routing_key.text, "q");
  EXPECT_EQ(client_->get(1, "q")->body, "");
}

TEST_F(Restart, CommittedTransactionsStayAndOpenOnesGo) {
  client_->declare_queue(1, "a", {}, true);
  client_->declare_queue(1, "b", {}, true);
  client_->call<tx::SelectOk>(1, tx::Select{});
  Properties persistent;
  persistent.delivery_mode = 2;
  for (const char* q : {"a", "b"}) client_->publish(1, "", q, "committed", persistent);
  client_->call<tx::CommitOk>(1, tx::Commit{});
  for (const char* q : {"a", "b"}) client_->publish(1, "", q, "open", persistent);
  client_->call<basic::QosOk>(1, basic::Qos{});
  restart();
  for (const char* q : {"a", "b"})
    EXPECT_EQ(bodies(client_->drain(1, q)), std::vector{"committed"s}) << q;
}

TEST_F(Restart, ManyTimesWithNewMessagesEachTime) {
  client_->declare_queue(1, "q", {}, true);
  std::vector<std::string> sent;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> now;
    for (int i = 0; i < 20; ++i) now.push_back(std::to_string(round * 20 + i));
    publish("q", now);
    sent.insert(sent.end(), now.begin(), now.end());
    restart();
  }
  EXPECT_EQ(bodies(client_->drain(1, "q")), sent);
}

}  // namespace
}  // namespace stoat::test
