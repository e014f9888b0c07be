#include "wire/frame.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/wire/allocation_probe.hpp"
#include "tests/wire/bytes.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"
#include "wire/properties.hpp"
#include "wire/queue.hpp"

namespace stoat::wire {
namespace {

using test::bytes;
using test::ExactCopy;
using test::hex;
using Kind = FrameDecoder::Kind;

constexpr std::uint32_t kFrameMaxBytes = 4096;

// What came out of a decoder: events with the pieces of bodies put together, because how many
// there are depends on how the bytes were cut.
struct Seen {
  struct Entry {
    Kind kind;
    ChannelNumber channel;
    std::string payload;
    std::string error_text;
    bool unexpected_frame;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;

  void add(const FrameDecoder::Event& e) {
    if (e.kind == Kind::body && !entries.empty() && entries.back().kind == Kind::body &&
        entries.back().channel == e.channel) {
      entries.back().payload += e.payload;
      return;
    }
    entries.push_back(
        {e.kind, e.channel, std::string(e.payload), std::string(e.error_text), e.unexpected_frame});
  }
};

// Feeds one piece, in memory of exactly its size, until it is used up or the decoder fails.
void feed(FrameDecoder& decoder, std::string_view piece, Seen& seen) {
  const ExactCopy copy(piece);
  std::string_view input = copy.view();
  for (auto e = decoder.next(input); e.kind != Kind::need_more; e = decoder.next(input)) {
    seen.add(e);
    if (e.kind == Kind::error) return;
  }
  EXPECT_TRUE(input.empty());
}

bool failed(const Seen& seen) {
  return !seen.entries.empty() && seen.entries.back().kind == Kind::error;
}

Seen decode_whole(std::string_view conversation) {
  FrameDecoder decoder(kFrameMaxBytes);
  Seen seen;
  feed(decoder, conversation, seen);
  return seen;
}

Seen decode_pieces(std::string_view conversation, auto next_size) {
  FrameDecoder decoder(kFrameMaxBytes);
  Seen seen;
  while (!conversation.empty() && !failed(seen)) {
    const std::string_view piece = conversation.substr(0, next_size());
    feed(decoder, piece, seen);
    conversation.remove_prefix(piece.size());
  }
  return seen;
}

// What a client sends after the protocol header: handshake, declare, publishes with bodies of
// several frames and of none, an empty body frame, heartbeats, acks.
std::string recorded_conversation() {
  std::string out;
  const ChannelNumber zero(0), one(1), two(65535);
  append_method(out, zero,
                connection::StartOk{Table{{"product", "abc"}, {"capabilities", Table{{"x", true}}}},
                                    "PLAIN", std::string_view("\0guest\0guest", 12), "en_US"});
  append_method(out, zero, connection::TuneOk{2047, kFrameMaxBytes, 60});
  append_method(out, zero, connection::Open{"/", "", false});
  out += kHeartbeatFrame;
  append_method(out, one, channel::Open{});
  append_method(out, two, channel::Open{});
  append_method(out, one, queue::Declare{0, "q", false, true, false, false, false, {}});
  Properties properties;
  properties.delivery_mode = 2;
  properties.headers = Table{{"k", std::string(500, 'v')}};
  const auto publish = [&](ChannelNumber channel, std::size_t body_bytes) {
    append_method(out, channel, basic::Publish{0, "", "q", false, false});
    append_content_header(out, channel, body_bytes, properties.encode());
    std::string body(body_bytes, '\0');
    for (std::size_t i = 0; i < body_bytes; ++i) body[i] = static_cast<char>(i * 7);
    append_body(out, channel, body, kFrameMaxBytes);
  };
  publish(one, 0);
  publish(one, 1);
  publish(two, 4500);
  out += kHeartbeatFrame;
  append_frame(out, kFrameBody, one, "");
  append_method(out, one, basic::Ack{1, true});
  publish(one, 300);
  append_method(out, zero, connection::Close{200, "bye", 0, 0});
  return out;
}

TEST(FrameDecoder, RecordedConversationWhole) {
  const Seen seen = decode_whole(recorded_conversation());
  std::string kinds;
  for (const auto& entry : seen.entries) kinds += "?mhbk!"[static_cast<int>(entry.kind)];
  EXPECT_EQ(kinds, "mmmkmmmmhmhbmhbkbmmhbm");
  EXPECT_EQ(seen.entries[13].channel, ChannelNumber(65535));
  EXPECT_EQ(seen.entries[14].payload.size(), 4500u);
  EXPECT_EQ(seen.entries[16].payload, "");
}

TEST(FrameDecoder, CutAtEveryByte) {
  const std::string conversation = recorded_conversation();
  const Seen whole = decode_whole(conversation);
  for (std::size_t cut = 0; cut <= conversation.size(); ++cut) {
    FrameDecoder decoder(kFrameMaxBytes);
    Seen seen;
    feed(decoder, std::string_view(conversation).substr(0, cut), seen);
    feed(decoder, std::string_view(conversation).substr(cut), seen);
    ASSERT_TRUE(seen.entries == whole.entries) << "cut at " << cut;
  }
}

TEST(FrameDecoder, ByteByByte) {
  const std::string conversation = recorded_conversation();
  EXPECT_TRUE(decode_pieces(conversation, [] { return 1; }).entries ==
              decode_whole(conversation).entries);
}

TEST(FrameDecoder, RandomPieces) {
  const std::string conversation = recorded_conversation();
  const Seen whole = decode_whole(conversation);
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t longest = std::size_t{1} << (1 + seed % 12);
    const Seen seen = decode_pieces(conversation, [&] {
      return std::uniform_int_distribution<std::size_t>(1, longest)(random);
    });
    ASSERT_TRUE(seen.entries == whole.entries) << "seed " << seed;
  }
}

TEST(FrameDecoder, WholeFramesAreViewsIntoTheInput) {
  std::string stream;
  append_method(stream, ChannelNumber(1), basic::Publish{0, "x", "k", false, false});
  append_content_header(stream, ChannelNumber(1), 3, bytes("0000"));
  append_body(stream, ChannelNumber(1), "abc", kFrameMaxBytes);
  std::string_view input = stream;
  FrameDecoder decoder(kFrameMaxBytes);
  test::AllocationProbe probe;
  for (int frame = 0; frame < 3; ++frame) {
    const auto event = decoder.next(input);
    EXPECT_GE(event.payload.data(), stream.data());
    EXPECT_LE(event.payload.data() + event.payload.size(), stream.data() + stream.size());
    EXPECT_EQ(decoder.buffered_bytes(), 0u);
  }
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  EXPECT_EQ(probe.total_bytes(), 0u);
}

TEST(FrameDecoder, BodyBytesArePassedOnAsTheyCome) {
  const std::string head = bytes("03 0001 00000006");
  FrameDecoder decoder(kFrameMaxBytes);
  std::string_view input = head;
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  input = "abc";
  const char* const first = input.data();
  auto event = decoder.next(input);
  EXPECT_EQ(event.kind, Kind::body);
  EXPECT_EQ(event.payload, "abc");
  EXPECT_EQ(event.payload.data(), first);
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
  input = "def";  // the payload is complete, its end mark still to come
  event = decoder.next(input);
  EXPECT_EQ(event.payload, "def");
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  const std::string rest = bytes("ce 08 0000 00000000 ce");
  input = rest;
  EXPECT_EQ(decoder.next(input).kind, Kind::heartbeat);
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
}

TEST(FrameDecoder, EmptyBodyFrameIsOneEvent) {
  const std::string frame = bytes("03 0007 00000000 ce");
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    FrameDecoder decoder(kFrameMaxBytes);
    int events = 0;
    for (const std::string& piece : {frame.substr(0, cut), frame.substr(cut)}) {
      std::string_view input = piece;
      for (auto e = decoder.next(input); e.kind != Kind::need_more; e = decoder.next(input)) {
        EXPECT_EQ(e.kind, Kind::body);
        EXPECT_EQ(e.channel, ChannelNumber(7));
        EXPECT_EQ(e.payload, "");
        ++events;
      }
    }
    EXPECT_EQ(events, 1) << "cut at " << cut;
  }
}

TEST(FrameDecoder, NeedMoreOnNothing) {
  FrameDecoder decoder(kFrameMaxBytes);
  std::string_view nothing;
  EXPECT_EQ(decoder.next(nothing).kind, Kind::need_more);
  EXPECT_EQ(decoder.next(nothing).kind, Kind::need_more);
}

struct BadStream {
  const char* name;
  const char* notation;
  bool unexpected_frame;
};

// Field report 95, as far as it is the decoder's.
const BadStream kBadStreams[] = {
    {"type 0", "00 0000 00000000 ce", false},
    {"type 4", "04 0000 00000000 ce", false},
    {"type 9", "09 0001 00000001 00 ce", false},
    {"type 255", "ff 0000 00000000 ce", false},
    {"protocol header", "'AMQP'00000901", false},
    {"one byte too large", "01 0000 00000ff9 00", false},
    {"body one byte too large", "03 0001 00000ff9 00", false},
    {"4 GiB", "01 0000 ffffffff 00", false},
    {"4 GiB of body", "03 0001 ffffffff 00", false},
    {"method ends wrong", "01 0001 00000004 005a000a cf", false},
    {"header ends wrong", "02 0001 00000002 0000 00", false},
    {"body ends wrong", "03 0001 00000003 'abc' 00", false},
    {"empty body ends wrong", "03 0001 00000000 00", false},
    {"heartbeat ends wrong", "08 0000 00000000 00", false},
    {"heartbeat with a payload", "08 0000 00000001 00 ce", false},
    {"heartbeat on a channel", "08 0001 00000000 ce", true},
    {"heartbeat on a channel with a payload", "08 ffff 00000002 0000 ce", true},
};

TEST(FrameDecoder, BadStreamsFailWhereverTheyAreCut) {
  std::string good;
  append_method(good, ChannelNumber(1), basic::Ack{1, false});
  for (const BadStream& c : kBadStreams) {
    const std::string stream = good + bytes(c.notation);
    const Seen whole = decode_whole(stream);
    ASSERT_TRUE(failed(whole)) << c.name;
    const auto error = whole.entries.back();
    EXPECT_FALSE(error.error_text.empty()) << c.name;
    EXPECT_EQ(error.unexpected_frame, c.unexpected_frame) << c.name;
    // Nothing of a bad frame that is whole in the input comes out.
    EXPECT_EQ(whole.entries.size(), 2u) << c.name;
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      FrameDecoder decoder(kFrameMaxBytes);
      Seen seen;
      feed(decoder, stream.substr(0, cut), seen);
      if (!failed(seen)) feed(decoder, stream.substr(cut), seen);
      ASSERT_TRUE(failed(seen)) << c.name << " cut at " << cut;
      EXPECT_EQ(seen.entries.front(), whole.entries.front());
      EXPECT_EQ(seen.entries.back(), error) << c.name << " cut at " << cut;
    }
  }
}

TEST(FrameDecoder, StaysFailed) {
  FrameDecoder decoder(kFrameMaxBytes);
  const std::string bad = bytes("08 0001 00000000 ce");
  std::string_view input = bad;
  const auto first = decoder.next(input);
  ASSERT_EQ(first.kind, Kind::error);
  for (std::string_view more : {std::string_view(), kHeartbeatFrame, std::string_view("x")}) {
    const auto again = decoder.next(more);
    EXPECT_EQ(again.kind, Kind::error);
    EXPECT_EQ(again.error_text, first.error_text);
    EXPECT_TRUE(again.unexpected_frame);
  }
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
}

TEST(FrameDecoder, LargestFrameIsTaken) {
  for (const std::uint8_t type : {kFrameMethod, kFrameHeader, kFrameBody}) {
    std::string frame;
    append_frame(frame, type, ChannelNumber(1), std::string(kFrameMaxBytes - 8, 'x'));
    ASSERT_EQ(frame.size(), kFrameMaxBytes);
    const Seen seen = decode_whole(frame);
    ASSERT_EQ(seen.entries.size(), 1u);
    EXPECT_EQ(seen.entries[0].payload.size(), kFrameMaxBytes - 8);
  }
}

TEST(FrameDecoder, FrameMaxCanChange) {
  std::string frame;
  append_frame(frame, kFrameMethod, ChannelNumber(0), std::string(8000, 'x'));
  FrameDecoder decoder(kFrameMaxBytes);
  decoder.set_frame_max(131072);
  std::string_view input = frame;
  EXPECT_EQ(decoder.next(input).payload.size(), 8000u);
  decoder.set_frame_max(4096);
  input = frame;
  EXPECT_EQ(decoder.next(input).kind, Kind::error);
}

// A size that was only announced costs nothing.
TEST(FrameDecoder, BuffersWhatCameNotWhatWasAnnounced) {
  for (const char* head : {"01 0001 0001fff8", "02 0001 0001fff8", "03 0001 0001fff8"}) {
    const std::string start = bytes(head) + std::string(100, 'x');
    test::AllocationProbe probe;
    FrameDecoder decoder(131072);
    std::string_view input = start;
    auto event = decoder.next(input);
    if (event.kind == Kind::body) event = decoder.next(input);
    EXPECT_EQ(event.kind, Kind::need_more);
    EXPECT_LE(decoder.buffered_bytes(), start.size());
    EXPECT_LE(probe.largest_bytes(), 2 * start.size());
  }
}

TEST(FrameDecoder, GivesALargeBufferBack) {
  std::string frame;
  append_frame(frame, kFrameHeader, ChannelNumber(1), std::string(100000, 'x'));
  test::AllocationProbe probe;
  FrameDecoder decoder(131072);
  std::string_view input = std::string_view(frame).substr(0, 60000);
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  EXPECT_EQ(decoder.buffered_bytes(), 60000u);
  input = std::string_view(frame).substr(60000);
  EXPECT_EQ(decoder.next(input).payload.size(), 100000u);
  EXPECT_GE(probe.live_bytes(), 100000);
  EXPECT_EQ(decoder.next(input).kind, Kind::need_more);
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
  EXPECT_LT(probe.live_bytes(), 8192);
}

TEST(Frame, Constants) {
  EXPECT_EQ(hex(kProtocolHeader), hex(bytes("'AMQP' 00 00 09 01")));
  EXPECT_EQ(hex(kHeartbeatFrame), hex(bytes("08 0000 00000000 ce")));
  std::string out;
  append_frame(out, kFrameBody, ChannelNumber(0xABCD), "xyz");
  EXPECT_EQ(hex(out), hex(bytes("03 abcd 00000003 'xyz' ce")));
}

}  // namespace
}  // namespace stoat::wire
