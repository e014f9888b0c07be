// channel.close and connection.close with what races against them.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class Closing : public ProtocolTest {
 protected:
  static std::string bytes(std::uint16_t channel, const auto& method) {
    std::string out;
    append_method(out, ChannelNumber(channel), method);
    return out;
  }
  // A whole message to the default exchange.
  static std::string message(std::uint16_t channel, std::string_view key, std::string_view body) {
    std::string out = bytes(channel, basic::Publish{0, "", key, false, false});
    append_content_header(out, ChannelNumber(channel), body.size(), "\0\0"sv);
    append_body(out, ChannelNumber(channel), body, 4096);
    return out;
  }
};

TEST_F(Closing, ChannelsCloseAndTheirNumbersAreFreeAtOnce) {
  WireClient client = connect();
  for (int i = 0; i < 100; ++i) {
    client.open_channel(2);
    client.close_channel(2);
  }
}

TEST_F(Closing, OpenMayFollowCloseWithoutWaitingForItsAnswer) {
  STOAT_OWN_CHOICE("others let the two race");
  WireClient client = connect();
  std::string pipelined;
  for (int i = 0; i < 50; ++i)
    pipelined += bytes(2, channel::Open{}) + bytes(2, channel::Close{200, "", 0, 0});
  client.send_raw(pipelined);
  for (int i = 0; i < 50; ++i) {
    client.expect<channel::OpenOk>(2);
    client.expect<channel::CloseOk>(2);
  }
}

TEST_F(Closing, FramesBehindAChannelErrorAreDiscarded) {
  WireClient client = connect();
  const std::string q = queue(), missing = name("missing");
  client.declare_queue(1, q);
  client.open_channel(2);
  // The error comes first; the client has sent all this before it knows.
  std::string out = bytes(2, queue::Purge{0, missing, false});
  out += message(2, q, "discarded");
  out += bytes(2, queue::Declare{0, missing, false, false, false, false, false, {}});
  client.send_raw(out);
  client.expect_channel_close(2, 404);  // answered by close-ok
  client.open_channel(2);
  client.publish(2, "", q, "kept");
  EXPECT_EQ(client.get(2, q)->body, "kept");
  EXPECT_FALSE(client.get(2, q));
  EXPECT_FALSE(queue_exists(client, missing));
}

TEST_F(Closing, CloseOkMayCutOffAMessageThatIsDiscarded) {
  STOAT_OWN_CHOICE("others look at what they discard, and answer 505");
  WireClient client = connect();
  const std::string q = queue(), missing = name("missing");
  client.declare_queue(1, q);
  client.open_channel(2);
  std::string out = bytes(2, queue::Purge{0, missing, false});
  out += bytes(2, basic::Publish{0, "", q, false, false});
  client.send_raw(out);
  client.expect_channel_close(2, 404);
  client.open_channel(2);
  client.publish(2, "", q, "kept");
  EXPECT_EQ(client.get(2, q)->body, "kept");
}

TEST_F(Closing, CloseFromBothSidesAtOnceIsAnswered) {
  WireClient client = connect();
  const std::string missing = name("missing");
  client.open_channel(2);
  client.send_raw(bytes(2, queue::Purge{0, missing, false}) +
                  bytes(2, channel::Close{200, "bye", 0, 0}));
  // The broker's close for the error, and close-ok for ours, in any order.
  bool closed = false, answered = false;
  while (!closed || !answered) {
    const Frame frame = client.take(2, "channel.close or channel.close-ok");
    const auto id = peek_method_id(*frame.payload);
    closed = closed || id == channel::Close::kId;
    answered = answered || id == channel::CloseOk::kId;
    ASSERT_TRUE(id == channel::Close::kId || id == channel::CloseOk::kId) << describe(frame);
  }
  client.send(2, channel::CloseOk{});
  client.open_channel(2);
  client.nothing_within(kQuiet);
}

TEST_F(Closing, ASecondErrorOnAClosingChannelIsNotAnswered) {
  WireClient client = connect();
  const std::string missing = name("missing");
  client.open_channel(2);
  client.send_raw(bytes(2, queue::Purge{0, missing, false}) +
                  bytes(2, queue::Purge{0, missing, false}) + bytes(2, basic::Ack{77, false}));
  EXPECT_EQ(client.expect<channel::Close>(2).reply_code, 404);
  client.nothing_within(kQuiet);
  client.send(2, channel::CloseOk{});
  client.open_channel(2);
}

TEST_F(Closing, AnErrorOnOneChannelLeavesTheOthersAlone) {
  WireClient client = connect();
  const std::string q = queue(), missing = name("missing");
  client.declare_queue(1, q);
  client.open_channel(2);
  client.open_channel(3);
  client.consume(3, q, "tag", true);
  client.send(2, basic::Get{0, missing, true});
  client.expect_channel_close(2, 404);
  client.publish(1, "", q, "m");
  EXPECT_EQ(client.expect_delivery(3).body, "m");
}

TEST_F(Closing, AReusedChannelNumberGetsNothingOfItsFormerLife) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  for (int round = 0; round < 20; ++round) {
    client.open_channel(2);
    client.confirm_select(2);
    client.consume(2, q, "tag");
    std::string out;
    for (int i = 0; i < 50; ++i) out += message(2, q, "m");
    out += bytes(2, channel::Close{200, "", 0, 0});
    client.send_raw(out);
    // Deliveries and confirms may come up to close-ok.
    for (bool closed = false; !closed;) {
      const Frame frame = client.take(2, "what is on its way, then close-ok");
      closed = frame.kind == FrameDecoder::Kind::method &&
               peek_method_id(*frame.payload) == channel::CloseOk::kId;
    }
    client.open_channel(2);
    client.publish(2, "", name("nobody"), "m");  // not in confirm mode any more
    client.nothing_within(20ms, 2);
    EXPECT_EQ(client.call<queue::PurgeOk>(2, queue::Purge{0, q, false}).message_count, 50u);
    client.close_channel(2);
  }
}

TEST_F(Closing, ConnectionCloseIsAnsweredAndEverythingBehindItDiscarded) {
  const std::string q = queue();
  WireClient observer = connect();
  observer.declare_queue(1, q);
  WireClient client = connect();
  // The answer must arrive although the broker closes with unread bytes from us.
  std::string out = message(1, q, "before") + bytes(0, connection::Close{200, "bye", 0, 0});
  for (int i = 0; i < 5000; ++i) out += message(1, q, "behind");
  client.send_raw(out);
  client.expect<connection::CloseOk>(0);
  EXPECT_TRUE(eventually([&] { return observer.ready_count(1, q) >= 1; }));
  EXPECT_EQ(bodies(observer.drain(1, q)), std::vector{"before"s});
}

TEST_F(Closing, ConnectionCloseWithOpenWorkReturnsIt) {
  const std::string q = queue();
  WireClient observer = connect();
  observer.declare_queue(1, q);
  for (int i = 0; i < 5; ++i) observer.publish(1, "", q, std::to_string(i));
  WireClient client = connect();
  client.qos(1, 3);
  client.consume(1, q);
  for (int i = 0; i < 3; ++i) client.expect_delivery(1);
  client.close();
  EXPECT_EQ(bodies(observer.drain(1, q)), (std::vector{"0"s, "1"s, "2"s, "3"s, "4"s}));
}

TEST_F(Closing, AConnectionErrorDiscardsWhatComesAfterIt) {
  const std::string q = queue();
  WireClient observer = connect();
  observer.declare_queue(1, q);
  WireClient client = connect();
  std::string out = message(1, q, "before") + bytes(1, channel::Open{});
  for (int i = 0; i < 100; ++i) out += message(1, q, "behind");
  client.send_raw(out);
  client.expect_connection_close(504);
  EXPECT_TRUE(eventually([&] { return observer.ready_count(1, q) >= 1; }));
  EXPECT_EQ(bodies(observer.drain(1, q)), std::vector{"before"s});
}

TEST_F(Closing, ALostPublisherLeavesNoPartOfAMessage) {
  const std::string q = queue();
  WireClient observer = connect();
  observer.declare_queue(1, q, {}, true);
  const std::string begin = bytes(1, basic::Publish{0, "", q, false, false});
  std::string header;
  append_content_header(header, ChannelNumber(1), 1 << 20, "\0\0"sv);
  std::string part;
  append_body(part, ChannelNumber(1), std::string(300 * 1024, 'b'), 131072);
  for (const std::string& sent : {begin, begin + header, begin + header + part}) {
    WireClient client = connect();
    client.send_raw(sent);
    client.open_channel(2);  // so that it has been read
    client.socket().reset();
  }
  observer.publish(1, "", q, "whole");
  EXPECT_EQ(bodies(observer.drain(1, q)), std::vector{"whole"s});
}

TEST_F(Closing, ManyChannelsOpenAndCloseTogether) {
  WireClient client = connect();
  for (std::uint16_t channel = 2; channel <= 2047; ++channel) client.send(channel, channel::Open{});
  for (std::uint16_t channel = 2; channel <= 2047; ++channel)
    client.expect<channel::OpenOk>(channel);
  client.close();
}

}  // namespace
}  // namespace stoat::test
