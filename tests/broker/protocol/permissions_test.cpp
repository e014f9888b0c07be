// Who may do what: configure, write and read patterns where RabbitMQ checks them; vhosts apart.

#include <fstream>

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"
#include "wire/access.hpp"

namespace stoat::test {
namespace {

// RabbitMQ's format: base64 of four bytes of salt and the digest of salt and password.
constexpr const char* kDefinitions = R"json({
  "users": [
    {"name": "limited", "password_hash": "EjRWeH9qsjdALw263zSjtW6zIG2QBWs5i1oNmQHoINCB5Xva",
     "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""},
    {"name": "limited512", "password_hash":
     "AQIDBLPbCix5HOUIud2RONuBN830mlo7KhIyrgQ0MRSIufbQ5NnBGlswfGemQ4z1teeoxdgWvXJNmEYsaQFA+PMimHo=",
     "hashing_algorithm": "rabbit_password_hashing_sha512", "tags": []},
    {"name": "impersonator", "password_hash": "EjRWeIn2DfY+jZCHkko1XEbFLTCzoIKfW0z4oKMRT5swUXnq",
     "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "impersonator"}
  ],
  "vhosts": [{"name": "/"}, {"name": "second"}],
  "permissions": [
    {"user": "guest", "vhost": "second", "configure": ".*", "write": ".*", "read": ".*"},
    {"user": "limited", "vhost": "/", "configure": "^mine", "write": "^(mine|to)", "read": "^(mine|from)"},
    {"user": "limited512", "vhost": "/", "configure": "", "write": "", "read": ""},
    {"user": "impersonator", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
  ],
  "exchanges": [
    {"name": "defined", "vhost": "second", "type": "topic", "durable": true, "auto_delete": false,
     "internal": false, "arguments": {}}
  ],
  "queues": [
    {"name": "defined", "vhost": "second", "durable": true, "auto_delete": false,
     "arguments": {"x-max-length": 10}}
  ],
  "bindings": [
    {"source": "defined", "vhost": "second", "destination": "defined", "destination_type": "queue",
     "routing_key": "a.#", "arguments": {}}
  ]
})json";

// Each test has a broker of its own that starts with these definitions, and the objects that the
// limited user may or may not touch.
class PermissionsTest : public ProtocolTest {
 protected:
  void SetUp() override {
    STOAT_NEEDS_OWN_BROKER();
    const auto file = folder_.path() / "definitions.json";
    std::ofstream(file) << kDefinitions;
    broker_.emplace([file](broker::Config& config) { config.load_definitions = file; });
    guest_.emplace(broker_->port(), ConnectOptions{});
    for (const char* name : {"mine", "to", "from", "other"}) {
      guest_->declare_queue(1, name);
      guest_->declare_exchange(1, name, "direct");
    }
    ConnectOptions options;
    options.user = "limited";
    options.password = "limited-secret";
    limited_.emplace(broker_->port(), options);
  }
  void TearDown() override {}  // the shared broker was not used

  template <class M>
  void expect_refused(const M& method, const std::string& what) {
    SCOPED_TRACE(method_name(M::kId));
    limited_->send(1, method);
    EXPECT_EQ(limited_->expect_channel_close(1, 403),
              "ACCESS_REFUSED - access to " + what + " in vhost '/' refused for user 'limited'");
    limited_->open_channel(1);
  }

  TempDir folder_;
  std::optional<TestBroker> broker_;
  std::optional<WireClient> guest_;
  std::optional<WireClient> limited_;
};

TEST_F(PermissionsTest, DeclareAndDeleteNeedConfigure) {
  const Table none;
  expect_refused(queue::Declare{0, "other", false, false, false, false, false, none},
                 "queue 'other'");
  expect_refused(queue::Declare{0, "to-new", false, false, false, false, false, none},
                 "queue 'to-new'");
  expect_refused(queue::Delete{0, "other", false, false, false}, "queue 'other'");
  expect_refused(exchange::Declare{0, "other", "direct", false, false, false, false, false, none},
                 "exchange 'other'");
  expect_refused(exchange::Delete{0, "other", false, false}, "exchange 'other'");
  limited_->declare_queue(1, "mine");
  limited_->declare_queue(1, "mine too");
  limited_->declare_exchange(1, "mine too", "fanout");
  limited_->delete_queue(1, "mine too");
  limited_->delete_exchange(1, "mine too");
  EXPECT_TRUE(queue_exists(*guest_, "other"));
}

TEST_F(PermissionsTest, BindNeedsWriteOnTheDestinationAndReadOnTheSource) {
  const Table none;
  limited_->bind(1, "mine", "mine", "k");
  limited_->bind(1, "to", "from", "k");
  expect_refused(queue::Bind{0, "other", "mine", "k", false, none}, "queue 'other'");
  expect_refused(queue::Bind{0, "from", "mine", "k", false, none}, "queue 'from'");
  expect_refused(queue::Bind{0, "mine", "to", "k", false, none}, "exchange 'to'");
  expect_refused(queue::Unbind{0, "other", "mine", "k", none}, "queue 'other'");
  expect_refused(queue::Unbind{0, "mine", "other", "k", none}, "exchange 'other'");
  limited_->bind_exchange(1, "to", "from", "k");
  expect_refused(exchange::Bind{0, "from", "mine", "k", false, none}, "exchange 'from'");
  expect_refused(exchange::Bind{0, "mine", "to", "k", false, none}, "exchange 'to'");
  expect_refused(exchange::Unbind{0, "other", "mine", "k", false, none}, "exchange 'other'");
  limited_->call<queue::UnbindOk>(1, queue::Unbind{0, "to", "from", "k", none});
}

TEST_F(PermissionsTest, PublishNeedsWriteOnTheExchange) {
  for (const auto& [exchange, shown] :
       {std::pair{"other", "other"}, std::pair{"from", "from"}, std::pair{"", "amq.default"}}) {
    limited_->publish(1, exchange, "mine", "refused");
    EXPECT_EQ(limited_->expect_channel_close(1, 403),
              "ACCESS_REFUSED - access to exchange '" + std::string(shown) +
                  "' in vhost '/' refused for user 'limited'");
    limited_->open_channel(1);
  }
  guest_->bind(1, "mine", "to", "k");
  limited_->publish(1, "to", "k", "taken");
  EXPECT_EQ(limited_->get(1, "mine")->body, "taken");
  EXPECT_FALSE(limited_->get(1, "mine"));
}

TEST_F(PermissionsTest, ConsumeGetAndPurgeNeedRead) {
  for (const char* q : {"other", "to"}) {
    const std::string what = "queue '" + std::string(q) + "'";
    expect_refused(basic::Consume{0, q, "t", false, true, false, false, {}}, what);
    expect_refused(basic::Get{0, q, true}, what);
    expect_refused(queue::Purge{0, q, false}, what);
  }
  limited_->consume(1, "from");
  limited_->get(1, "mine");
  limited_->call<queue::PurgeOk>(1, queue::Purge{0, "mine", false});
}

TEST_F(PermissionsTest, AlternateAndDeadLetterExchangesNeedWriteAndTheObjectRead) {
  const Table to_other{{"alternate-exchange", "other"}}, to_mine{{"alternate-exchange", "to"}};
  expect_refused(
      exchange::Declare{0, "mine2", "direct", false, false, false, false, false, to_other},
      "exchange 'other'");
  limited_->declare_exchange(1, "mine2", "direct", to_mine);
  const Table dead_other{{"x-dead-letter-exchange", "other"}};
  expect_refused(queue::Declare{0, "mine2", false, false, false, false, false, dead_other},
                 "exchange 'other'");
  limited_->declare_queue(1, "mine2", {{"x-dead-letter-exchange", "to"}});
}

TEST_F(PermissionsTest, ServerNamedQueuesNeedConfigureOnTheirName) {
  limited_->send(1, queue::Declare{0, "", false, false, true, false, false, {}});
  limited_->expect_channel_close(1, 403);
}

TEST_F(PermissionsTest, EmptyPatternsAllowNothing) {
  ConnectOptions options;
  options.user = "limited512";
  options.password = "limited-secret";
  WireClient client(broker_->port(), options);
  client.publish(1, "mine", "k", "m");
  client.expect_channel_close(1, 403);
  client.open_channel(1);
  client.send(1, basic::Get{0, "mine", true});
  client.expect_channel_close(1, 403);
}

TEST_F(PermissionsTest, AVhostWithoutPermissionsIsNotAllowed) {
  ConnectOptions options;
  options.user = "limited";
  options.password = "limited-secret";
  WireClient client(broker_->port());
  client.expect_start();
  client.send_start_ok(options);
  client.expect<connection::Tune>(0);
  client.send(0, connection::TuneOk{10, 131072, 0});
  client.send(0, connection::Open{"second", "", false});
  EXPECT_EQ(client.expect_connection_close(530),
            "NOT_ALLOWED - access to vhost 'second' refused for user 'limited'");
}

TEST_F(PermissionsTest, VhostsDoNotShareNames) {
  ConnectOptions options;
  options.vhost = "second";
  WireClient second(broker_->port(), options);
  EXPECT_FALSE(queue_exists(second, "mine"));
  second.declare_queue(1, "mine");
  second.publish(1, "", "mine", "in second");
  EXPECT_EQ(guest_->ready_count(1, "mine"), 0u);
  EXPECT_EQ(second.get(1, "mine")->body, "in second");
  second.send(1, basic::Get{0, "nowhere", true});
  EXPECT_EQ(second.expect_channel_close(1, 404),
            "NOT_FOUND - no queue 'nowhere' in vhost 'second'");
}

TEST_F(PermissionsTest, DefinedObjectsAreThere) {
  ConnectOptions options;
  options.vhost = "second";
  WireClient second(broker_->port(), options);
  second.publish(1, "defined", "a.b", "routed");
  EXPECT_EQ(second.get(1, "defined")->body, "routed");
  second.declare_queue(1, "defined", {{"x-max-length", 10}}, true);
}

TEST_F(PermissionsTest, ImpersonatorsMaySendOthersUserId) {
  ConnectOptions options;
  options.user = "impersonator";
  options.password = "impersonator-secret";
  WireClient client(broker_->port(), options);
  Properties properties;
  properties.user_id = "somebody else";
  client.confirm_select(1);
  client.publish(1, "", "mine", "m", properties);
  client.expect_confirm(1);
  EXPECT_EQ(guest_->get(1, "mine")->properties().user_id, "somebody else");
  properties.user_id = "limited";
  limited_->publish(1, "mine", "k", "m", properties);  // one's own is fine
  limited_->open_channel(2);
}

TEST_F(PermissionsTest, AccessRequestGivesATicketAndUpdateSecretIsAnswered) {
  EXPECT_EQ(guest_->call<access::RequestOk>(1, access::Request{}).ticket, 1);
  guest_->call<connection::UpdateSecretOk>(0, connection::UpdateSecret{"secret", "expired"});
  guest_->publish(1, "", "mine", "still at work");
  EXPECT_EQ(guest_->get(1, "mine")->body, "still at work");
}

}  // namespace
}  // namespace stoat::test
