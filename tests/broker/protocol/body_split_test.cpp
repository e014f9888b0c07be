// Bodies cut at every boundary, on the way in and on the way out.

#include <random>

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

constexpr std::uint32_t kSmall = 4096;
constexpr std::uint32_t kLarge = 131072;
// A body frame's payload is at most frame_max − 8.
constexpr std::size_t kSizes[] = {0,    1,    2,    4087,    4088,    4089,
                                  8175, 8176, 8177, 131'064, 131'065, 1 << 20};

std::string body_of(std::size_t size) {
  std::string body(size, '\0');
  std::minstd_rand random(static_cast<unsigned>(size) + 1);
  for (char& byte : body) byte = static_cast<char>(random() >> 7);
  return body;
}

class BodySplit : public ProtocolTest {
 protected:
  static WireClient connect_with(std::uint32_t frame_max) {
    ConnectOptions options;
    options.frame_max = frame_max;
    return connect(options);
  }
  // One message whose body comes in frames of the given payload sizes, the last one repeated.
  static std::string message_in(std::string_view key, std::string_view body,
                                const std::function<std::size_t()>& next_size) {
    std::string out;
    append_method(out, ChannelNumber(1), basic::Publish{0, "", key, false, false});
    append_content_header(out, ChannelNumber(1), body.size(), "\0\0"sv);
    while (!body.empty()) {
      const std::string_view part = body.substr(0, next_size());
      append_frame(out, kFrameBody, ChannelNumber(1), part);
      body.remove_prefix(part.size());
    }
    return out;
  }
  static void expect_whole(const Gotten& message, const std::string& body,
                           std::uint32_t frame_max) {
    EXPECT_TRUE(message.body == body) << "of " << body.size() << " bytes";
    for (const std::size_t payload : message.body_frame_bytes) {
      EXPECT_GT(payload, 0u);
      EXPECT_LE(payload, frame_max - 8);
    }
    const std::size_t frames = (body.size() + frame_max - 9) / (frame_max - 8);
    EXPECT_EQ(message.body_frame_bytes.size(), frames) << "for " << body.size() << " bytes";
  }
};

TEST_F(BodySplit, EverySizeArrivesInFramesOfTheReceiversMaximum) {
  const std::string q = queue();
  for (const std::uint32_t in : {kSmall, kLarge}) {
    for (const std::uint32_t out : {kSmall, kLarge}) {
      WireClient publisher = connect_with(in), receiver = connect_with(out);
      publisher.declare_queue(1, q);
      publisher.confirm_select(1);
      for (const std::size_t size : kSizes) publisher.publish(1, "", q, body_of(size));
      publisher.collect_confirms(1, std::size(kSizes));
      for (const std::size_t size : kSizes) {
        const auto message = receiver.get(1, q);
        ASSERT_TRUE(message);
        expect_whole(*message, body_of(size), out);
      }
    }
  }
}

TEST_F(BodySplit, FramesOfAnySizeMakeUpABody) {
  const std::string q = queue();
  WireClient client = connect_with(kSmall);
  client.declare_queue(1, q);
  std::minstd_rand random(4711);
  const auto full = [] { return std::size_t{kSmall - 8}; };
  const auto any = [&] { return std::size_t{1} + random() % (kSmall - 8); };
  const auto one = [] { return std::size_t{1}; };
  for (const std::size_t size : kSizes) {
    client.send_raw(message_in(q, body_of(size), full));
    client.send_raw(message_in(q, body_of(size), any));
    if (size <= 8177) client.send_raw(message_in(q, body_of(size), one));
    for (int copies = size <= 8177 ? 3 : 2; copies > 0; --copies) {
      const auto message = client.get(1, q);
      ASSERT_TRUE(message);
      expect_whole(*message, body_of(size), kSmall);
    }
  }
}

TEST_F(BodySplit, SocketWritesOfAnySizeMakeUpFrames) {
  const std::string q = queue();
  WireClient client = connect_with(kSmall);
  client.declare_queue(1, q);
  std::minstd_rand random(815);
  std::string all;
  std::vector<std::string> sent;
  for (int i = 0; i < 60; ++i) {
    sent.push_back(body_of(random() % 9000));
    all += message_in(q, sent.back(), [&] { return std::size_t{1} + random() % (kSmall - 8); });
  }
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view part = rest.substr(0, 1 + random() % 5000);
    client.send_raw(part);
    rest.remove_prefix(part.size());
  }
  EXPECT_TRUE(bodies(client.drain(1, q)) == sent);
}

TEST_F(BodySplit, BodiesOfSeveralChannelsMayInterleave) {
  const std::string a = queue("a"), b = queue("b");
  WireClient client = connect_with(kSmall);
  client.declare_queue(1, a);
  client.declare_queue(1, b);
  client.open_channel(2);
  const std::string body_a = body_of(20'000), body_b = body_of(30'000);
  std::string out;
  const ChannelNumber one(1), two(2);
  append_method(out, one, basic::Publish{0, "", a, false, false});
  append_method(out, two, basic::Publish{0, "", b, false, false});
  append_content_header(out, two, body_b.size(), "\0\0"sv);
  append_content_header(out, one, body_a.size(), "\0\0"sv);
  for (std::size_t at = 0; at < body_b.size(); at += 1000) {
    if (at < body_a.size()) append_frame(out, kFrameBody, one, body_a.substr(at, 1000));
    append_frame(out, kFrameBody, two, body_b.substr(at, 1000));
  }
  client.send_raw(out);
  EXPECT_TRUE(client.get(1, a)->body == body_a);
  EXPECT_TRUE(client.get(2, b)->body == body_b);
}

TEST_F(BodySplit, DeliveriesAndReturnsAreCutLikeGets) {
  const std::string q = queue(), nobody = name("nobody");
  const std::string body = body_of(50'000);
  WireClient publisher = connect_with(kLarge), receiver = connect_with(kSmall);
  publisher.declare_queue(1, q);
  receiver.consume(1, q, "tag", true);
  publisher.publish(1, "", q, body);
  const Delivery delivery = receiver.expect_delivery(1);
  EXPECT_TRUE(delivery.body == body);
  for (const std::size_t payload : delivery.body_frame_bytes) EXPECT_LE(payload, kSmall - 8);
  receiver.publish(1, "", nobody, body, {}, true);
  const Returned returned = receiver.expect_content<basic::Return>(1);
  EXPECT_TRUE(returned.body == body);
  for (const std::size_t payload : returned.body_frame_bytes) EXPECT_LE(payload, kSmall - 8);
}

TEST_F(BodySplit, EmptyBodyFramesAreTakenAsNothing) {
  STOAT_OWN_CHOICE("a frame without bytes inside a body changes nothing");
  const std::string q = queue();
  WireClient client = connect();
  client.declare_queue(1, q);
  std::string out;
  append_method(out, ChannelNumber(1), basic::Publish{0, "", q, false, false});
  append_content_header(out, ChannelNumber(1), 4, "\0\0"sv);
  for (const char* part : {"", "ab", "", "", "cd"})
    append_frame(out, kFrameBody, ChannelNumber(1), part);
  client.send_raw(out);
  EXPECT_EQ(client.get(1, q)->body, "abcd");
}

TEST_F(BodySplit, ABodyOfManyMegabytesGoesThroughWhole) {
  const std::string q = queue();
  WireClient client = connect();
  client.declare_queue(1, q);
  const std::string body = body_of(std::size_t{20} << 20);
  client.publish(1, "", q, body);
  const auto message = client.get(1, q);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->body == body);
}

}  // namespace
}  // namespace stoat::test
