// Heartbeats in both directions, and the end of peers that fall silent.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Heartbeats : public ProtocolTest {
 protected:
  static WireClient connect_with_heartbeat(std::uint16_t seconds) {
    ConnectOptions options;
    options.heartbeat = seconds;
    return connect(options);
  }
};

// A peer whose TCP is alive and which says nothing (a stopped process), in several situations at
// once, because each takes its intervals.
TEST_F(Heartbeats, ASilentPeerIsDroppedThoughItsTcpIsAlive) {
  WireClient observer = connect();
  const std::string q = queue(), exclusive = name("exclusive");
  observer.declare_queue(1, q);
  for (int i = 1; i <= 3; ++i) observer.publish(1, "", q, std::to_string(i));
  ASSERT_TRUE(eventually([&] { return observer.ready_count(1, q) == 3; }));

  WireClient silent = connect_with_heartbeat(1);
  silent.qos(1, 2);
  queue::Declare declare;
  declare.queue = exclusive;
  declare.exclusive = true;
  silent.call<queue::DeclareOk>(1, declare);
  silent.consume(1, q);
  silent.expect_delivery(1);
  silent.expect_delivery(1);

  WireClient half_a_frame = connect_with_heartbeat(1);
  half_a_frame.send_raw("\x01\0\x01\0\0\0\x40"sv);
  WireClient half_a_message = connect_with_heartbeat(1);
  half_a_message.send(1, basic::Publish{0, "", q, false, false});
  WireClient no_heartbeats = connect_with_heartbeat(0);
  const auto began = TestClock::now();

  EXPECT_TRUE(silent.socket().receive_end(kReplyLimit));
  EXPECT_GE(TestClock::now() - began, 1500ms) << "one late heartbeat is not silence";
  EXPECT_LE(TestClock::now() - began, 8s);
  EXPECT_TRUE(half_a_frame.socket().receive_end(kReplyLimit));
  EXPECT_TRUE(half_a_message.socket().receive_end(kReplyLimit));

  EXPECT_TRUE(eventually([&] { return observer.ready_count(1, q) == 3; }));
  const auto messages = observer.drain(1, q);
  EXPECT_EQ(bodies(messages), (std::vector{"1"s, "2"s, "3"s}));
  EXPECT_TRUE(messages[0].method.redelivered && messages[1].method.redelivered);
  EXPECT_TRUE(eventually([&] { return !queue_exists(observer, exclusive); }));

  no_heartbeats.nothing_within(500ms);
  no_heartbeats.open_channel(2);
}

TEST_F(Heartbeats, AreSentToAPeerThatOnlyListensAndAnyTrafficKeepsItAlive) {
  WireClient beating = connect_with_heartbeat(1);
  WireClient talking = connect_with_heartbeat(1);  // its methods count, it sends no heartbeat
  const std::string q = queue();
  talking.declare_queue(1, q);
  const auto end = TestClock::now() + 4s;
  while (TestClock::now() < end) {
    beating.send_heartbeat();
    talking.publish(1, "", q, "m");
    beating.nothing_within(400ms);
  }
  EXPECT_GE(beating.heartbeats_received(), 3u);
  // Twice in an interval is usual; a broker that rounds half a second down to none floods its peer.
  EXPECT_LE(beating.heartbeats_received(), 20u);
  beating.open_channel(2);
  talking.open_channel(2);
  EXPECT_GE(talking.heartbeats_received(), 3u);
}

TEST_F(Heartbeats, ZeroMeansNone) {
  WireClient client = connect_with_heartbeat(0);
  client.nothing_within(1500ms);
  EXPECT_EQ(client.heartbeats_received(), 0u);
}

TEST_F(Heartbeats, MayComeBetweenTheFramesOfAMessage) {
  WireClient client = connect_with_heartbeat(30);
  const std::string q = queue();
  client.declare_queue(1, q);
  client.send(1, basic::Publish{0, "", q, false, false});
  client.send_heartbeat();
  std::string out;
  append_content_header(out, ChannelNumber(1), 6, "\0\0"sv);
  out += kHeartbeatFrame;
  append_body(out, ChannelNumber(1), "abc", 4096);
  out += kHeartbeatFrame;
  append_body(out, ChannelNumber(1), "def", 4096);
  client.send_raw(out);
  EXPECT_EQ(client.get(1, q)->body, "abcdef");
}

}  // namespace
}  // namespace stoat::test
