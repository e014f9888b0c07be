// What one client can make the broker hold: answers it does not take, messages it does not finish,
// and what stays behind when it goes while it is held back.

#include <cstdlib>
#include <span>

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

constexpr std::size_t kMb = 1'000'000;

class Limits : public ProtocolTest {
 protected:
  static constexpr int kLarge = 100;  // messages of 1 MB

  // Asks for all of them at once, and reads nothing.
  static void get_all(WireClient& client, const std::string& queue) {
    std::string gets;
    for (int i = 0; i < kLarge; ++i) {
      append_method(gets, ChannelNumber(1), basic::Get{0, queue, false});
    }
    client.send_raw(gets);
  }
  static void fill(WireClient& client, const std::string& queue) {
    client.confirm_select(1);
    const std::string body(kMb, 'l');
    for (int i = 0; i < kLarge; ++i) client.publish(1, "", queue, body);
    client.collect_confirms(1, kLarge);
  }
  // Once it has stood still for a while.
  static std::uint32_t settled_ready_count(WireClient& client, const std::string& queue) {
    std::uint32_t before = client.ready_count(1, queue);
    for (int still = 0; still < 10;) {
      client.nothing_within(50ms);
      const std::uint32_t now = client.ready_count(1, queue);
      still = now == before ? still + 1 : 0;
      before = now;
    }
    return before;
  }
};

// More than the pending output, and the socket buffers of both sides.
constexpr std::uint32_t kMostTaken = 40;

TEST_F(Limits, GetsAreNotWorkedOffForAClientThatDoesNotRead) {
  WireClient watcher = connect(), client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  fill(client, q);
  get_all(client, q);
  EXPECT_GE(settled_ready_count(watcher, q), kLarge - kMostTaken);
  for (int i = 1; i <= kLarge; ++i) {
    const Gotten gotten = client.expect_content<basic::GetOk>(1);
    ASSERT_EQ(gotten.method.delivery_tag, static_cast<std::uint64_t>(i));
    ASSERT_EQ(gotten.body.size(), kMb);
  }
}

TEST_F(Limits, AClientThatTakesNothingIsNotKeptByItsHeartbeat) {
  WireClient watcher = connect();
  ConnectOptions options;
  options.heartbeat = 1;
  const std::string q = queue();
  watcher.declare_queue(1, q);
  fill(watcher, q);
  WireClient client = connect(options);
  get_all(client, q);
  EXPECT_LT(settled_ready_count(watcher, q), static_cast<std::uint32_t>(kLarge));
  EXPECT_TRUE(eventually([&] { return watcher.ready_count(1, q) == kLarge; }))
      << "closed, and what it took is back";
}

TEST_F(Limits, RepliesThatARequesterDoesNotTakeAreDropped) {
  STOAT_OWN_CHOICE("others keep them in memory");
  WireClient requester = connect(), responder = connect();
  const std::string q = queue();
  responder.declare_queue(1, q);
  responder.consume(1, q, "", true);
  requester.consume(1, "amq.rabbitmq.reply-to", "", true);
  Properties properties;
  properties.reply_to = "amq.rabbitmq.reply-to";
  requester.publish(1, "", q, "ask", properties);
  const std::string address = responder.expect_delivery(1).properties().reply_to.value();
  const std::string body(kMb, 'r');
  for (int i = 0; i < kLarge; ++i) responder.publish(1, "", address, std::to_string(i) + body);
  responder.ready_count(1, q);  // all of them are through
  int came = 0;
  int last = -1;
  while (last < kLarge) {
    // One that is sent now finds room again.
    responder.publish(1, "", address, std::to_string(kLarge) + "x");
    const Delivery reply = requester.expect_delivery(1);
    const int number = std::atoi(reply.body.c_str());
    ASSERT_GE(number, last) << "in order";
    last = number;
    if (number < kLarge) ++came;
  }
  EXPECT_GT(came, 0);
  EXPECT_LT(came, static_cast<int>(kMostTaken));
}

TEST_F(Limits, AnAlarmHoldsBackWhatIsBehindTheFirstMessageOfARead) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker(
      [](broker::Config& config) { config.disk_alarm_free_mb = std::uint64_t{1} << 40; });
  WireClient watcher(broker.port(), ConnectOptions{}), client(broker.port(), ConnectOptions{});
  watcher.declare_queue(1, "q");
  std::string publishes;
  for (int i = 0; i < 50; ++i) {
    append_method(publishes, ChannelNumber(1), basic::Publish{0, "", "q", false, false});
    append_content_header(publishes, ChannelNumber(1), 4, Properties{}.encode());
    append_body(publishes, ChannelNumber(1), "body", client.frame_max());
  }
  client.send_raw(publishes);
  client.expect<connection::Blocked>(0);
  EXPECT_EQ(settled_ready_count(watcher, "q"), 1u);
}

TEST_F(Limits, APublisherThatDiesWhileItIsHeldBackLeavesNothing) {
  STOAT_NEEDS_OWN_BROKER();
  for (const bool reset : {false, true}) {
    SCOPED_TRACE(reset ? "RST" : "FIN");
    TestBroker broker(
        [](broker::Config& config) { config.disk_alarm_free_mb = std::uint64_t{1} << 40; });
    WireClient other(broker.port(), ConnectOptions{}), client(broker.port(), ConnectOptions{});
    client.call<queue::DeclareOk>(1,
                                  queue::Declare{0, "mine", false, false, true, false, false, {}});
    client.publish(1, "", "mine", "m");
    client.expect<connection::Blocked>(0);
    client.publish(1, "", "mine", "not read");
    reset ? client.socket().reset() : client.socket().close();
    EXPECT_TRUE(eventually([&] {
      other.send(1, queue::Declare{0, "mine", false, false, false, false, false, {}});
      const Frame answer = other.take(1, "queue.declare-ok or channel.close");
      if (peek_method_id(*answer.payload) == queue::DeclareOk::kId) return true;
      other.send(1, channel::CloseOk{});
      other.open_channel(1);
      return false;
    })) << "its exclusive queue is still locked";
  }
}

TEST_F(Limits, UnfinishedMessagesOfAConnectionAreCountedTogether) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker([](broker::Config& config) { config.max_message_bytes = kMb; });
  WireClient client(broker.port(), ConnectOptions{});
  client.declare_queue(1, "q");
  const std::string most(kMb * 9 / 10, 'm');
  constexpr std::uint16_t kChannels[] = {1, 2, 3};
  for (const std::uint16_t channel : kChannels) {
    if (channel > 1) client.open_channel(channel);
    client.confirm_select(channel);
    client.send(channel, basic::Publish{0, "", "q", false, false});
    std::string out;
    append_content_header(out, ChannelNumber(channel), kMb, Properties{}.encode());
    append_body(out, ChannelNumber(channel), most, client.frame_max());
    client.send_raw(out);
  }
  client.expect_channel_close(3, 311);
  const std::string rest(kMb - most.size(), 'r');
  for (const std::uint16_t channel : std::span(kChannels).first(2)) {
    std::string out;
    append_body(out, ChannelNumber(channel), rest, client.frame_max());
    client.send_raw(out);
    EXPECT_FALSE(client.expect_confirm(channel).nack);
  }
  EXPECT_EQ(client.ready_count(1, "q"), 2u);
  // What is done with counts no more.
  client.open_channel(3);
  for (int i = 0; i < 5; ++i) client.publish(3, "", "q", most);
  EXPECT_TRUE(eventually([&] { return client.ready_count(1, "q") == 7; }));
}

}  // namespace
}  // namespace stoat::test
