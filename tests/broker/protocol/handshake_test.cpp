// From the first byte to connection.open-ok, and all the ways in which that fails.

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

class HandshakeTest : public ProtocolTest {
 protected:
  // The login is refused: our broker says why, others only end the connection.
  static void expect_refused(WireClient& client, std::uint16_t code) {
    if (against_another_broker()) {
      EXPECT_TRUE(client.socket().receive_end(kReplyLimit));
    } else {
      client.expect_connection_close(code);
    }
  }
  // Sends bytes in place of a protocol header and returns all that comes back before the end.
  static std::string answer_to(std::string_view bytes) {
    FrameSocket socket(port());
    socket.send(bytes);
    std::string answer = socket.receive_bytes(100, kReplyLimit);
    EXPECT_TRUE(socket.receive_end(kReplyLimit));
    return answer;
  }
};

TEST_F(HandshakeTest, StartTellsWhoWeAreAndWhatWeCan) {
  WireClient client(port());
  const auto start = client.expect_start();
  EXPECT_EQ(start.version_major, 0);
  EXPECT_EQ(start.version_minor, 9);
  EXPECT_NE(start.mechanisms.text.find("PLAIN"), std::string_view::npos);
  EXPECT_NE(start.mechanisms.text.find("AMQPLAIN"), std::string_view::npos);
  EXPECT_NE(start.locales.text.find("en_US"), std::string_view::npos);
  for (const char* property :
       {"product", "version", "platform", "copyright", "information", "cluster_name"}) {
    const FieldValue* value = start.server_properties.find(property);
    ASSERT_TRUE(value != nullptr && value->as_string() != nullptr) << property;
    EXPECT_FALSE(value->as_string()->empty()) << property;
  }
  const FieldValue* capabilities = start.server_properties.find("capabilities");
  ASSERT_TRUE(capabilities != nullptr && capabilities->as_table() != nullptr);
  for (const char* name : {"publisher_confirms", "exchange_exchange_bindings", "basic.nack",
                           "consumer_cancel_notify", "connection.blocked", "consumer_priorities",
                           "authentication_failure_close", "per_consumer_qos", "direct_reply_to"}) {
    const FieldValue* value = capabilities->as_table()->find(name);
    EXPECT_TRUE(value != nullptr && value->as_bool() != nullptr && *value->as_bool()) << name;
  }
}

TEST_F(HandshakeTest, ServerPropertiesNameStoatMqWithThreeNumbers) {
  STOAT_OWN_CHOICE("the product's name");
  WireClient client(port());
  const auto start = client.expect_start();
  EXPECT_EQ(*start.server_properties.find("product")->as_string(), "StoatMQ");
  int major = -1, minor = -1, patch = -1, end = 0;
  const std::string version = *start.server_properties.find("version")->as_string();
  EXPECT_EQ(sscanf(version.c_str(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3) << version;
  EXPECT_EQ(static_cast<std::size_t>(end), version.size()) << version;
}

TEST_F(HandshakeTest, OtherProtocolHeadersAreAnsweredWithOurs) {
  for (const std::string_view header :
       {"AMQP\0\0\x09\2"sv, "AMQP\0\1\0\0"sv, "AMQP\3\1\0\0"sv, "amqp\0\0\x09\1"sv, "XXXXXXXX"sv}) {
    EXPECT_EQ(answer_to(header), kProtocolHeader);
  }
  // RabbitMQ speaks 0-8 as well, we do not.
  if (!against_another_broker()) {
    EXPECT_EQ(answer_to("AMQP\1\1\x08\0"sv), kProtocolHeader);
  }
}

TEST_F(HandshakeTest, HttpAndTlsBytesEndTheConnection) {
  const std::string_view client_hello =
      "\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03 and what else a client says first"sv;
  for (const std::string_view bytes : {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"sv,
                                       "POST /api HTTP/1.1\r\n\r\n"sv, client_hello}) {
    const std::string answer = answer_to(bytes);
    // Our header at most: nothing that HTTP or TLS could take for its own.
    EXPECT_TRUE(answer.empty() || answer == kProtocolHeader) << answer.size() << " bytes";
  }
}

TEST_F(HandshakeTest, BytesMayComeOneByOne) {
  WireClient client(port());
  for (const char byte : kProtocolHeader) client.send_raw({&byte, 1});
  client.expect<connection::Start>(0);
  std::string frame;
  append_method(frame, ChannelNumber(0),
                connection::StartOk{{}, "PLAIN", "\0guest\0guest"sv, "en_US"});
  for (const char byte : frame) client.send_raw({&byte, 1});
  client.expect<connection::Tune>(0);
}

TEST_F(HandshakeTest, AllMayComeInOneWrite) {
  WireClient client(port());
  std::string all(kProtocolHeader);
  const ChannelNumber zero(0);
  append_method(all, zero, connection::StartOk{{}, "PLAIN", "\0guest\0guest"sv, "en_US"});
  append_method(all, zero, connection::TuneOk{10, 4096, 0});
  append_method(all, zero, connection::Open{"/", "", false});
  append_method(all, ChannelNumber(1), channel::Open{});
  client.send_raw(all);
  client.expect<connection::Start>(0);
  client.expect<connection::Tune>(0);
  client.expect<connection::OpenOk>(0);
  client.expect<channel::OpenOk>(1);
}

TEST_F(HandshakeTest, BothMechanismsLogIn) {
  for (const char* mechanism : {"PLAIN", "AMQPLAIN"}) {
    ConnectOptions options;
    options.mechanism = mechanism;
    connect(options).close();
  }
}

TEST_F(HandshakeTest, AWrongPasswordIsToldToThoseWhoAskedForThat) {
  for (const auto& [user, password] :
       {std::pair{"guest", "wrong"}, std::pair{"nobody", "guest"}, std::pair{"guest", ""}}) {
    ConnectOptions options;
    options.user = user;
    options.password = password;
    WireClient client(port());
    client.expect_start();
    client.send_start_ok(options);
    EXPECT_TRUE(client.expect_connection_close(403).starts_with(
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN"));
  }
}

TEST_F(HandshakeTest, AWrongPasswordOtherwiseEndsTheConnectionAfterADelay) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker([](broker::Config& config) { config.login_failure_delay_ms = 400; });
  ConnectOptions options;
  options.password = "wrong";
  options.client_properties = {};
  WireClient client(broker.port());
  client.expect_start();
  client.send_start_ok(options);
  client.nothing_within(200ms);
  client.expect_eof();
}

TEST_F(HandshakeTest, MalformedLoginsAreRefused) {
  struct Case {
    const char* what;
    const char* mechanism;
    std::string_view response;
    std::uint16_t code;
  };
  const Case cases[] = {
      {"unknown mechanism", "SCRAM-SHA-256", "\0guest\0guest"sv, 503},
      {"empty mechanism", "", "\0guest\0guest"sv, 503},
      {"no NUL at all", "PLAIN", "guest"sv, 502},
      {"one NUL only", "PLAIN", "\0guest"sv, 502},
      {"AMQPLAIN that is no table", "AMQPLAIN", "\x05LOGINS\xff\xff\xff\xff"sv, 502},
      {"AMQPLAIN without a password", "AMQPLAIN", "\x05LOGINS\0\0\0\x05guest"sv, 502},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    WireClient client(port());
    client.expect_start();
    client.send(0, connection::StartOk{ConnectOptions::all_capabilities(), c.mechanism, c.response,
                                       "en_US"});
    expect_refused(client, c.code);
    if (against_another_broker()) break;  // each takes it seconds of silence
  }
}

TEST_F(HandshakeTest, MethodsOutOfOrderAreRefused) {
  WireClient early(port());
  early.expect_start();
  early.send(0, connection::Open{"/", "", false});
  expect_refused(early, 504);
  if (against_another_broker()) return;  // it waits for seconds before each end

  WireClient channel_first(port());
  channel_first.expect_start();
  channel_first.send(1, channel::Open{});
  channel_first.expect_connection_close(504);

  WireClient twice = connect();
  twice.send(0, connection::Open{"/", "", false});
  EXPECT_TRUE(twice.expect_connection_close(504).starts_with("CHANNEL_ERROR")) << "already open";
}

TEST_F(HandshakeTest, FramesBeforeTheLoginAreSmall) {
  WireClient client(port());
  client.expect_start();
  // A megabyte is announced; refused from the header alone, whatever follows it.
  client.send_raw("\x01\0\0\0\x10\0\0"sv);
  client.send_raw(std::string(64, 'x'));
  expect_refused(client, 501);
}

TEST_F(HandshakeTest, TuneOkOutOfBoundsIsNotAllowed) {
  WireClient probe = connect();
  const auto offered = probe.tune();
  EXPECT_EQ(offered.frame_max, 131072u);
  EXPECT_EQ(offered.channel_max, 2047);
  EXPECT_EQ(offered.heartbeat, 60);
  struct Case {
    std::uint16_t channel_max;
    std::uint32_t frame_max;
  };
  const Case cases[] = {{2047, 131073}, {2047, 0xFFFFFFFF}, {2047, 4095},
                        {2047, 1},      {2048, 131072},     {65535, 131072}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.channel_max) + " channels, frames of " +
                 std::to_string(c.frame_max));
    WireClient client(port());
    client.expect_start();
    client.send_start_ok({});
    client.expect<connection::Tune>(0);
    client.send(0, connection::TuneOk{c.channel_max, c.frame_max, 60});
    expect_refused(client, 530);
    if (against_another_broker()) break;
  }
}

TEST_F(HandshakeTest, TheSmallestFrameMaxWorks) {
  // RabbitMQ 4.1 and later refuse what is below 8192; old clients ask for it.
  ConnectOptions options;
  options.frame_max = 4096;
  WireClient client = connect(options);
  const std::string q = queue();
  client.declare_queue(1, q);
  client.publish(1, "", q, std::string(10'000, 'b'));
  EXPECT_EQ(client.get(1, q)->body.size(), 10'000u);
}

TEST_F(HandshakeTest, ChannelMaxIsKept) {
  ConnectOptions options;
  options.channel_max = 3;
  WireClient client = connect(options);  // opens 1
  client.open_channel(2);
  client.open_channel(3);
  client.close_channel(2);
  client.open_channel(2);
  client.send(4, channel::Open{});
  client.expect_connection_close(530);
}

TEST_F(HandshakeTest, VhostsThatDoNotExistAreNotAllowed) {
  const std::string vhost = name("vhost");
  ConnectOptions options;
  options.vhost = vhost;
  WireClient client(port());
  client.expect_start();
  client.send_start_ok(options);
  client.expect<connection::Tune>(0);
  client.send(0, connection::TuneOk{100, 131072, 0});
  client.send(0, connection::Open{vhost, "", false});
  EXPECT_EQ(client.expect_connection_close(530), "NOT_ALLOWED - vhost " + vhost + " not found");
}

TEST_F(HandshakeTest, HasATimeLimitWhereverItStops) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker([](broker::Config& config) { config.handshake_timeout_ms = 500; });
  WireClient silent(broker.port());
  WireClient header_only(broker.port());
  header_only.expect_start();
  WireClient half_a_header(broker.port());
  half_a_header.send_raw("AMQP");
  WireClient half_a_frame(broker.port());
  half_a_frame.expect_start();
  half_a_frame.send_raw("\x01\0\0\0"sv);
  WireClient no_open(broker.port());
  no_open.expect_start();
  no_open.send_start_ok({});
  no_open.expect<connection::Tune>(0);
  WireClient complete(broker.port(), ConnectOptions{});

  for (WireClient* client : {&silent, &header_only, &half_a_header, &half_a_frame, &no_open})
    EXPECT_TRUE(client->socket().receive_end(kReplyLimit));
  complete.nothing_within(kQuiet);
  complete.open_channel(2);
}

TEST_F(HandshakeTest, ConnectionsBeyondTheLimitAreRefusedAndRoomIsMadeAgain) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker([](broker::Config& config) { config.max_connections = 2; });
  std::optional<WireClient> first(std::in_place, broker.port(), ConnectOptions{});
  WireClient second(broker.port(), ConnectOptions{});
  EXPECT_THROW(WireClient(broker.port(), ConnectOptions{}), std::exception);
  second.open_channel(2);  // the others do not notice
  first->close();
  EXPECT_TRUE(eventually([&] {
    try {
      WireClient(broker.port(), ConnectOptions{}).close();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }));
}

}  // namespace
}  // namespace stoat::test
