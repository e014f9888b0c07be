#include "client/connection_machine.hpp"

#include <gtest/gtest.h>

#include "tests/client/conversation.hpp"

namespace stoat::client {
namespace {

using namespace std::chrono_literals;
using test::Answer;
using test::Conversation;
namespace connection = wire::connection;
namespace channel = wire::channel;

connection::Start start_of(std::string_view mechanisms) {
  return {.server_properties = {}, .mechanisms = mechanisms, .locales = "en_US"};
}

TEST(Login, SaysWhoItIsAndAnswersEachStep) {
  Uri uri;
  uri.user = "ann";
  uri.password = "s3cret";
  uri.vhost = "shop";
  ConnectionOptions options("orders-1");
  options.client_properties.set("team", "sales");
  Conversation talk(options, uri);
  talk.start();
  talk.send(0, start_of("AMQPLAIN PLAIN"));

  const auto start_ok = talk.sent<connection::StartOk>(0);
  EXPECT_EQ(start_ok.mechanism.text, "PLAIN");
  EXPECT_EQ(start_ok.response.text, std::string_view("\0ann\0s3cret", 11));
  const Table& properties = start_ok.client_properties;
  EXPECT_EQ(*properties.find("connection_name")->as_string(), "orders-1");
  EXPECT_EQ(*properties.find("team")->as_string(), "sales");
  for (const char* key : {"product", "version", "platform"})
    EXPECT_NE(properties.find(key), nullptr) << key;
  const Table* capabilities = properties.find("capabilities")->as_table();
  ASSERT_NE(capabilities, nullptr);
  for (const char* key : {"publisher_confirms", "basic.nack", "consumer_cancel_notify",
                          "connection.blocked", "authentication_failure_close"})
    EXPECT_TRUE(capabilities->find(key) && *capabilities->find(key)->as_bool()) << key;

  talk.send(0, connection::Tune{10, 8192, 20});
  const auto tune_ok = talk.sent<connection::TuneOk>(0);
  EXPECT_EQ(tune_ok.channel_max, 10);
  EXPECT_EQ(tune_ok.frame_max, 8192u);
  EXPECT_EQ(tune_ok.heartbeat, 20);
  EXPECT_EQ(talk.sent<connection::Open>(0).virtual_host.text, "shop");
  EXPECT_TRUE(talk.opened.pending());
  talk.send(0, connection::OpenOk{});
  EXPECT_TRUE(talk.opened.succeeded());
  EXPECT_TRUE(talk.machine.is_open());
}

TEST(Login, TunesToTheLowerOfBothProposals) {
  struct Case {
    connection::Tune offered;
    std::uint16_t channel_max;
    std::uint32_t frame_max;
    std::uint16_t heartbeat, expected_channel_max;
    std::uint32_t expected_frame_max;
    std::uint16_t expected_heartbeat;
  };
  const Case cases[] = {
      {{2047, 131072, 60}, 2047, 131072, 60, 2047, 131072, 60},
      {{0, 0, 0}, 2047, 131072, 60, 2047, 131072, 60},
      {{0, 0, 0}, 0, 131072, 0, 65535, 131072, 0},
      {{100, 4096, 580}, 2047, 131072, 60, 100, 4096, 60},
      {{2047, 131072, 10}, 5, 10000, 60, 5, 10000, 10},
      {{2047, 131072, 60}, 2047, 131072, 0, 2047, 131072, 0},
      {{2047, 131072, 60}, 2047, 100, 60, 2047, 4096, 60},
  };
  for (const Case& c : cases) {
    ConnectionOptions options;
    options.channel_max = c.channel_max;
    options.frame_max_bytes = c.frame_max;
    options.heartbeat = std::chrono::seconds(c.heartbeat);
    Conversation talk(options);
    talk.start();
    talk.send(0, start_of("PLAIN"));
    talk.sent<connection::StartOk>(0);
    talk.send(0, c.offered);
    const auto tune_ok = talk.sent<connection::TuneOk>(0);
    EXPECT_EQ(tune_ok.channel_max, c.expected_channel_max);
    EXPECT_EQ(tune_ok.frame_max, c.expected_frame_max);
    EXPECT_EQ(tune_ok.heartbeat, c.expected_heartbeat);
  }
}

TEST(Login, EachWayToFailHasItsKind) {
  struct Case {
    const char* what;
    void (*fail)(Conversation&);
    ErrorKind kind;
    std::uint16_t code;
  };
  const auto to_tune = [](Conversation& talk) {
    talk.send(0, start_of("PLAIN"));
    talk.sent<connection::StartOk>(0);
  };
  static void (*const reach_tune)(Conversation&) = to_tune;
  const Case cases[] = {
      {"no PLAIN", [](Conversation& t) { t.send(0, start_of("EXTERNAL PLAINER")); },
       ErrorKind::access_refused, 0},
      {"another protocol's header",
       [](Conversation& t) {
         t.receive({"AMQP\0\1\0\0", 8});
       },
       ErrorKind::protocol_violation, 0},
      {"not AMQP", [](Conversation& t) { t.receive("HTTP/1.1 400 Bad Request\r\n\r\n"); },
       ErrorKind::protocol_violation, 501},
      {"version 0-8",
       [](Conversation& t) {
         auto start = start_of("PLAIN");
         start.version_minor = 8;
         t.send(0, start);
       },
       ErrorKind::protocol_violation, 0},
      {"refused with a reason",
       [](Conversation& t) {
         reach_tune(t);
         t.send(0, connection::Close{403, "ACCESS_REFUSED - Login was refused", 0, 0});
         t.sent<connection::CloseOk>(0);
       },
       ErrorKind::access_refused, 403},
      {"dropped after the login",
       [](Conversation& t) {
         reach_tune(t);
         t.machine.socket_lost("End of file", t.now);
       },
       ErrorKind::access_refused, 0},
      {"no such vhost",
       [](Conversation& t) {
         reach_tune(t);
         t.send(0, connection::Tune{0, 0, 0});
         t.sent<connection::TuneOk>(0);
         t.sent<connection::Open>(0);
         t.send(0, connection::Close{530, "NOT_ALLOWED - vhost v not found", 10, 40});
         t.sent<connection::CloseOk>(0);
       },
       ErrorKind::access_refused, 530},
      {"frame_max too small",
       [](Conversation& t) {
         reach_tune(t);
         t.send(0, connection::Tune{0, 100, 0});
       },
       ErrorKind::protocol_violation, 0},
      {"open-ok before its time", [](Conversation& t) { t.send(0, connection::OpenOk{}); },
       ErrorKind::protocol_violation, 503},
      {"a malformed start",
       [](Conversation& t) {
         t.receive({"\1\0\0\0\0\0\5\0\x0a\0\x0a\0\xce", 13});
       },
       ErrorKind::protocol_violation, 502},
      {"connection lost", [](Conversation& t) { t.machine.socket_lost("reset", t.now); },
       ErrorKind::network, 0},
      {"silence", [](Conversation& t) { t.advance(10s); }, ErrorKind::timeout, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Conversation talk;
    talk.start();
    c.fail(talk);
    ASSERT_TRUE(talk.opened.failed());
    EXPECT_EQ(talk.opened.error().kind(), c.kind) << talk.opened.error().what();
    EXPECT_EQ(talk.opened.error().reply_code(), c.code);
    EXPECT_TRUE(talk.machine.finished());
    EXPECT_TRUE(talk.sent_nothing()) << "before open-ok there is nobody to tell";
  }
}

TEST(Login, TakesItsBytesInAnyPieces) {
  Conversation talk;
  talk.split_input = true;
  talk.log_in();
  EXPECT_TRUE(talk.machine.is_open());
}

TEST(Heartbeat, GoesOutWhenNothingElseDoesAndComesInFromAnything) {
  Conversation talk;
  talk.log_in({2047, 131072, 20});
  talk.advance(9s);
  EXPECT_TRUE(talk.sent_nothing());
  talk.advance(1s);
  EXPECT_TRUE(talk.sent_heartbeat());
  // Any traffic keeps the connection: here a heartbeat in two pieces.
  talk.advance(25s);
  EXPECT_TRUE(talk.sent_heartbeat());
  talk.receive(wire::kHeartbeatFrame.substr(0, 3));
  talk.receive(wire::kHeartbeatFrame.substr(3));
  talk.advance(39s);
  EXPECT_FALSE(talk.machine.finished());
  talk.advance(1s);
  EXPECT_TRUE(talk.machine.finished());
  EXPECT_EQ(talk.machine.reason()->kind(), ErrorKind::network);
}

TEST(Heartbeat, IsNeitherSentNorAskedForWhenThereIsNone) {
  ConnectionOptions options;
  options.heartbeat = 0s;
  Conversation talk(options);
  talk.log_in();
  talk.advance(24h);
  EXPECT_TRUE(talk.sent_nothing());
  EXPECT_TRUE(talk.machine.is_open());
}

TEST(Channels, TakeFreeNumbersUpToChannelMax) {
  Conversation talk;
  talk.log_in({3, 131072, 0});
  auto& first = talk.open_channel(1);
  talk.open_channel(2);
  talk.open_channel(3);
  Answer<ChannelIncarnation> fourth;
  talk.machine.open_channel(fourth.completion());
  ASSERT_TRUE(fourth.failed());
  EXPECT_EQ(fourth.error().kind(), ErrorKind::limit_reached);

  const ChannelIncarnation old = first.incarnation();
  Answer<void> closed;
  first.close(closed.completion());
  talk.sent<channel::Close>(1);
  talk.machine.open_channel(fourth.completion());
  EXPECT_EQ(fourth.calls(), 2) << "the number is not free before close-ok";
  talk.send(1, channel::CloseOk{});
  EXPECT_TRUE(closed.succeeded());
  talk.machine.release_channel(old);
  EXPECT_EQ(talk.machine.channel(old), nullptr);
  EXPECT_NE(talk.open_channel(1).incarnation(), old) << "same number, another life";
}

TEST(Channels, OpenOkAfterTheTimeLimitIsUndone) {
  Conversation talk;
  talk.log_in();
  Answer<ChannelIncarnation> answer;
  talk.machine.open_channel(answer.completion());
  talk.sent<channel::Open>(1);
  talk.advance(1s);
  ASSERT_TRUE(answer.failed());
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  talk.send(1, channel::OpenOk{});
  talk.sent<channel::Close>(1);
  talk.send(1, channel::CloseOk{});
  talk.open_channel(2);
  talk.open_channel(3);
  EXPECT_TRUE(talk.machine.is_open());
}

TEST(Close, ByThisProgramIsOrderlyAndEndsWhatIsPending) {
  Conversation talk;
  talk.log_in();
  auto& ch = talk.open_channel();
  Answer<QueueInfo> declare;
  ch.declare_queue("q", {}, {}, declare.completion());
  talk.sent<wire::queue::Declare>(1);
  Answer<void> closed;
  talk.machine.close(closed.completion());
  ASSERT_TRUE(declare.failed());
  EXPECT_EQ(declare.error().kind(), ErrorKind::closed);
  EXPECT_EQ(talk.sent<connection::Close>(0).reply_code, 200);
  // What the broker sent before it saw the close is of no interest any more.
  talk.send(1, wire::queue::DeclareOk{"q", 0, 0});
  talk.send(7, channel::CloseOk{});
  EXPECT_TRUE(closed.pending());
  talk.send(0, connection::CloseOk{});
  EXPECT_TRUE(closed.succeeded());
  EXPECT_TRUE(talk.machine.finished());
  Answer<void> again;
  talk.machine.close(again.completion());
  EXPECT_TRUE(again.succeeded());
  Answer<ChannelIncarnation> late;
  talk.machine.open_channel(late.completion());
  EXPECT_EQ(late.error().kind(), ErrorKind::closed);
}

TEST(Close, FromBothSidesAtOnceIsAnsweredAndDone) {
  Conversation talk;
  talk.log_in();
  Answer<void> closed;
  talk.machine.close(closed.completion());
  talk.sent<connection::Close>(0);
  talk.send(0, connection::Close{320, "CONNECTION_FORCED - shutdown", 0, 0});
  talk.sent<connection::CloseOk>(0);
  EXPECT_TRUE(closed.succeeded());
  EXPECT_TRUE(talk.machine.finished());
}

TEST(Close, WithoutAnAnswerEndsAtTheTimeLimit) {
  Conversation talk;
  talk.log_in();
  Answer<void> closed;
  talk.machine.close(closed.completion());
  talk.advance(999ms);
  EXPECT_TRUE(closed.pending());
  talk.advance(1ms);
  ASSERT_TRUE(closed.failed());
  EXPECT_EQ(closed.error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(talk.machine.finished());
}

TEST(PeerThatBreaksTheProtocol, IsToldAndLeft) {
  struct Case {
    const char* what;
    std::string bytes;
    std::uint16_t code;
  };
  const auto frame = [](std::uint8_t type, std::uint16_t ch, std::string_view payload) {
    std::string bytes;
    wire::append_frame(bytes, type, ChannelNumber(ch), payload);
    return bytes;
  };
  const auto method = [](std::uint16_t ch, const auto& m) {
    std::string bytes;
    wire::append_method(bytes, ChannelNumber(ch), m);
    return bytes;
  };
  const std::string deliver = method(1, wire::basic::Deliver{"t", 1, false, "", "q"});
  const std::string get_ok = method(1, wire::basic::GetOk{1, false, "", "q", 0});
  std::string bad_end = frame(1, 0, {"\0\x0a\0\x3d", 4});
  bad_end.back() = 'x';
  std::string wrong_class = frame(2, 1, std::string_view("\0\x32\0\0\0\0\0\0\0\0\0\1\0\0", 14));
  std::string no_properties = frame(2, 1, std::string_view("\0\x3c\0\0\0\0\0\0\0\0\0\1", 12));
  std::string bad_properties =
      frame(2, 1, std::string_view("\0\x3c\0\0\0\0\0\0\0\0\0\1\x80\0\5a", 16));
  std::string one_byte = frame(2, 1, std::string_view("\0\x3c\0\0\0\0\0\0\0\0\0\1\0\0", 14));
  const Case cases[] = {
      {"frame end", bad_end, 501},
      {"frame type", frame(9, 0, ""), 501},
      {"frame larger than agreed", {"\1\0\1\0\2\0\1", 7}, 501},
      {"heartbeat on a channel", frame(8, 1, ""), 505},
      {"method without its ids", frame(1, 1, "\1"), 501},
      {"content on channel 0", frame(2, 0, ""), 505},
      {"frame on a channel that is not open", method(9, channel::OpenOk{}), 504},
      {"a second start", method(0, start_of("PLAIN")), 503},
      {"a reply without its method", method(1, wire::queue::PurgeOk{1}), 503},
      {"a client's method", method(1, wire::queue::Purge{0, "q", false}), 503},
      {"delivery for an unknown tag", deliver, 530},
      {"get-ok without get", get_ok, 503},
      {"header out of place", one_byte, 505},
      {"body out of place", frame(3, 1, "x"), 505},
      {"confirm of nothing", method(1, wire::basic::Ack{1, false}), 503},
      {"malformed return", frame(1, 1, std::string_view("\0\x3c\0\x32\1\x38\xff", 7)), 502},
      {"method where content is due",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) +
           method(1, wire::basic::Ack{1, false}),
       505},
      {"body before its header",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) + frame(3, 1, "x"), 505},
      {"header of another class",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) + wrong_class, 505},
      {"header cut short",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) + no_properties, 502},
      {"malformed properties",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) + bad_properties, 502},
      {"more body than announced",
       method(1, wire::basic::Return{312, "NO_ROUTE", "x", "k"}) + one_byte + frame(3, 1, "xy"),
       505},
  };
  for (const Case& c : cases) {
    for (const bool split : {false, true}) {
      SCOPED_TRACE(c.what + std::string(split ? ", split" : ""));
      Conversation talk;
      talk.log_in();
      auto& ch = talk.open_channel();
      Answer<void> pending;
      ch.qos(1, false, pending.completion());
      talk.sent<wire::basic::Qos>(1);
      talk.split_input = split;
      talk.receive(c.bytes);
      EXPECT_EQ(talk.sent<connection::Close>(0).reply_code, c.code);
      EXPECT_TRUE(talk.sent_nothing());
      EXPECT_TRUE(talk.machine.finished());
      ASSERT_TRUE(pending.failed());
      EXPECT_EQ(pending.error().kind(), ErrorKind::protocol_violation);
      EXPECT_EQ(pending.error().reply_code(), c.code);
    }
  }
}

TEST(Blocked, IsKnownAndNamedByTimeouts) {
  Conversation talk;
  talk.log_in();
  auto& ch = talk.open_channel();
  talk.send(0, connection::Blocked{"low on memory"});
  EXPECT_EQ(talk.machine.blocked_reason(), "low on memory");
  Answer<void> answer;
  ch.qos(1, false, answer.completion());
  talk.advance(1s);
  ASSERT_TRUE(answer.failed());
  EXPECT_NE(std::string(answer.error().what()).find("low on memory"), std::string::npos);
  talk.send(0, connection::Unblocked{});
  EXPECT_FALSE(talk.machine.blocked_reason().has_value());
}

}  // namespace
}  // namespace stoat::client
