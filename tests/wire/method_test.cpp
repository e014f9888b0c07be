#include <gtest/gtest.h>

#include <boost/pfr/core.hpp>
#include <set>

#include "tests/wire/all_methods.hpp"
#include "tests/wire/bytes.hpp"
#include "wire/codec.hpp"

namespace stoat::wire {
namespace {

using test::bytes;
using test::ExactCopy;
using test::hex;

// The ids of AMQP 0-9-1 with RabbitMQ's extensions, in the order of AllMethods.
constexpr MethodId kIds[] = {
    {10, 10},  {10, 11},  {10, 20},  {10, 21},  {10, 30}, {10, 31}, {10, 40}, {10, 41}, {10, 50},
    {10, 51},  {10, 60},  {10, 61},  {10, 70},  {10, 71}, {20, 10}, {20, 11}, {20, 20}, {20, 21},
    {20, 40},  {20, 41},  {30, 10},  {30, 11},  {40, 10}, {40, 11}, {40, 20}, {40, 21}, {40, 30},
    {40, 31},  {40, 40},  {40, 51},  {50, 10},  {50, 11}, {50, 20}, {50, 21}, {50, 30}, {50, 31},
    {50, 40},  {50, 41},  {50, 50},  {50, 51},  {60, 10}, {60, 11}, {60, 20}, {60, 21}, {60, 30},
    {60, 31},  {60, 40},  {60, 50},  {60, 60},  {60, 70}, {60, 71}, {60, 72}, {60, 80}, {60, 90},
    {60, 100}, {60, 110}, {60, 111}, {60, 120}, {85, 10}, {85, 11}, {90, 10}, {90, 11}, {90, 20},
    {90, 21},  {90, 30},  {90, 31},
};
static_assert(std::size(kIds) == std::tuple_size_v<test::AllMethods>);

// Sets each member to something that its default is not and that no neighbour has.
class Fill {
 public:
  void operator()(bool& field) { field = !field; }
  void operator()(std::uint8_t& field) { field = static_cast<std::uint8_t>(0x80 + ++count_); }
  void operator()(std::uint16_t& field) { field = static_cast<std::uint16_t>(0x8100 + ++count_); }
  void operator()(std::uint32_t& field) { field = 0x81828300u + ++count_; }
  void operator()(std::uint64_t& field) { field = 0x8182838485868700u + ++count_; }
  void operator()(ShortString& field) { field = kTexts[++count_ % 4]; }
  void operator()(LongString& field) { field = kLongText; }
  void operator()(Table& field) {
    field =
        Table{{"s", "v"}, {"n", std::int64_t{-1}}, {"t", Table{{"a", Array{FieldValue(true)}}}}};
  }

 private:
  static constexpr const char* kTexts[] = {"first", "the second", "", "third of them"};
  // Longer than any short string, with a NUL and with what is not UTF-8.
  static inline const std::string kLongText = std::string(300, 'l') + std::string("\0\xff", 2);
  unsigned count_ = 0;
};

void expect_equal(const Table& a, const Table& b) {
  std::string x, y;
  Writer(x).table(a);
  Writer(y).table(b);
  EXPECT_EQ(hex(x), hex(y));
}
template <class T>
void expect_equal(const T& a, const T& b) {
  EXPECT_EQ(a, b);
}
void expect_equal(const ShortString& a, const ShortString& b) {
  EXPECT_EQ(a.text, b.text);
}
void expect_equal(const LongString& a, const LongString& b) {
  EXPECT_EQ(a.text, b.text);
}

template <class M>
void expect_same_members(const M& a, const M& b) {
  boost::pfr::for_each_field(
      a, [&](const auto& member, auto index) { expect_equal(member, boost::pfr::get<index>(b)); });
}

template <class M>
M filled() {
  M method;
  Fill fill;
  boost::pfr::for_each_field(method, [&](auto& field) { fill(field); });
  return method;
}

// The payload of the one frame in bytes, which has to be a method frame on channel.
std::string payload_of(std::string_view frame, ChannelNumber channel) {
  FrameDecoder decoder(131072);
  const auto event = decoder.next(frame);
  EXPECT_EQ(event.kind, FrameDecoder::Kind::method);
  EXPECT_EQ(event.channel, channel);
  EXPECT_TRUE(frame.empty());
  return std::string(event.payload);
}

template <class M>
std::string encoded(const M& method) {
  std::string out;
  append_method(out, ChannelNumber(0x1234), method);
  return payload_of(out, ChannelNumber(0x1234));
}

template <class M>
class EveryMethod : public testing::Test {};

template <class Tuple>
struct AsTypes;
template <class... M>
struct AsTypes<std::tuple<M...>> {
  using type = testing::Types<M...>;
};

// gtest 1.12 takes any number of types.
using MethodTypes = AsTypes<test::AllMethods>::type;
TYPED_TEST_SUITE(EveryMethod, MethodTypes);

TYPED_TEST(EveryMethod, ComesBackEqual) {
  for (const TypeParam& method : {TypeParam{}, filled<TypeParam>()}) {
    const ExactCopy payload(encoded(method));
    EXPECT_EQ(peek_method_id(payload.view()), TypeParam::kId);
    const auto back = decode_method<TypeParam>(payload.view());
    ASSERT_TRUE(back);
    expect_same_members(method, *back);
    EXPECT_EQ(hex(encoded(*back)), hex(payload.view()));
  }
}

TYPED_TEST(EveryMethod, EachBitHasItsOwnPlace) {
  std::set<std::string> seen;
  std::size_t bits = 0;
  boost::pfr::for_each_field(TypeParam{}, [&](const auto& field, auto index) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, bool>) {
      TypeParam method;
      boost::pfr::get<index>(method) = !field;
      const std::string payload = encoded(method);
      seen.insert(payload);
      ++bits;
      const auto back = decode_method<TypeParam>(payload);
      ASSERT_TRUE(back);
      expect_same_members(method, *back);
    }
  });
  EXPECT_EQ(seen.size(), bits);
}

TYPED_TEST(EveryMethod, EveryTruncationFails) {
  const std::string whole = encoded(filled<TypeParam>());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExactCopy payload(whole.substr(0, size));
    ASSERT_FALSE(decode_method<TypeParam>(payload.view())) << size << " of " << whole.size();
    ASSERT_EQ(peek_method_id(payload.view()).has_value(), size >= 4);
  }
}

TYPED_TEST(EveryMethod, BytesBehindTheArgumentsAreIgnored) {
  const auto method = filled<TypeParam>();
  const ExactCopy payload(encoded(method) + "more");
  const auto back = decode_method<TypeParam>(payload.view());
  ASSERT_TRUE(back);
  expect_same_members(method, *back);
}

TYPED_TEST(EveryMethod, OtherIdsAreRefused) {
  std::string payload = encoded(filled<TypeParam>());
  payload[3] = static_cast<char>(payload[3] ^ 0x40);
  EXPECT_FALSE(decode_method<TypeParam>(payload));
}

template <class... M>
std::vector<MethodId> ids_of(const std::tuple<M...>*) {
  return {M::kId...};
}

TEST(Methods, HaveTheIdsOfTheProtocol) {
  const auto ids = ids_of(static_cast<const test::AllMethods*>(nullptr));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], kIds[i]) << kIds[i].class_id << '.' << kIds[i].method_id;
  }
  EXPECT_EQ((MethodId{60, 120}.packed()), 0x003c0078u);
}

template <class M>
void expect_payload(const M& method, const char* notation) {
  EXPECT_EQ(hex(encoded(method)), hex(bytes(notation)));
  const std::string payload = bytes(notation);
  const auto back = decode_method<M>(payload);
  ASSERT_TRUE(back) << notation;
  expect_same_members(method, *back);
}

TEST(MethodBytes, Connection) {
  expect_payload(connection::Start{0, 9, Table{{"product", "StoatMQ"}}, "PLAIN AMQPLAIN", "en_US"},
                 "000a000a 00 09 00000014 07'product''S'00000007'StoatMQ' "
                 "0000000e'PLAIN AMQPLAIN' 00000005'en_US'");
  expect_payload(
      connection::StartOk{Table{{"product", "abc"}}, "PLAIN",
                          std::string_view("\0guest\0guest", 12), "en_US"},
      "000a000b 00000010 07'product''S'00000003'abc' 05'PLAIN' 0000000c 00'guest'00'guest' "
      "05'en_US'");
  expect_payload(connection::Tune{2047, 131072, 60}, "000a001e 07ff 00020000 003c");
  expect_payload(connection::TuneOk{2047, 4096, 0}, "000a001f 07ff 00001000 0000");
  expect_payload(connection::Open{"/", "", true}, "000a0028 01'/' 00 01");
  expect_payload(connection::OpenOk{}, "000a0029 00");
  expect_payload(connection::Close{320, "CONNECTION_FORCED", 0, 0},
                 "000a0032 0140 11'CONNECTION_FORCED' 0000 0000");
  expect_payload(connection::CloseOk{}, "000a0033");
  expect_payload(connection::Blocked{"low on memory"}, "000a003c 0d'low on memory'");
  expect_payload(connection::Unblocked{}, "000a003d");
  expect_payload(connection::UpdateSecret{"s3cret", "why"}, "000a0046 00000006's3cret' 03'why'");
}

TEST(MethodBytes, Channel) {
  expect_payload(channel::Open{}, "0014000a 00");
  expect_payload(channel::OpenOk{}, "0014000b 00000000");
  expect_payload(channel::Flow{true}, "00140014 01");
  expect_payload(channel::FlowOk{false}, "00140015 00");
  expect_payload(channel::Close{404, "NOT_FOUND", 50, 10}, "00140028 0194 09'NOT_FOUND' 0032 000a");
  expect_payload(channel::CloseOk{}, "00140029");
}

TEST(MethodBytes, Access) {
  expect_payload(access::Request{"/data", true, false, true, false, true}, "001e000a 05'/data' 15");
  expect_payload(access::RequestOk{}, "001e000b 0001");
}

TEST(MethodBytes, Exchange) {
  expect_payload(exchange::Declare{0, "x", "topic", false, true, false, true, false, {}},
                 "0028000a 0000 01'x' 05'topic' 0a 00000000");
  expect_payload(
      exchange::Declare{0, "x", "fanout", true, false, true, false, true,
                        Table{{"alternate-exchange", "ae"}}},
      "0028000a 0000 01'x' 06'fanout' 15 0000001a 12'alternate-exchange''S'00000002'ae'");
  expect_payload(exchange::Delete{0, "x", true, false}, "00280014 0000 01'x' 01");
  expect_payload(exchange::Bind{0, "d", "s", "rk", false, {}},
                 "0028001e 0000 01'd' 01's' 02'rk' 00 00000000");
  expect_payload(exchange::BindOk{}, "0028001f");
  expect_payload(exchange::Unbind{0, "d", "s", "rk", true, {}},
                 "00280028 0000 01'd' 01's' 02'rk' 01 00000000");
  expect_payload(exchange::UnbindOk{}, "00280033");
}

TEST(MethodBytes, Queue) {
  expect_payload(
      queue::Declare{0, "q", false, true, false, false, true, Table{{"x-max-length", 5}}},
      "0032000a 0000 01'q' 12 00000012 0c'x-max-length''I'00000005");
  expect_payload(queue::Declare{0, "", true, false, true, true, false, {}},
                 "0032000a 0000 00 0d 00000000");
  expect_payload(queue::DeclareOk{"q", 3, 1}, "0032000b 01'q' 00000003 00000001");
  expect_payload(queue::Bind{0, "q", "x", "a.#", true, {}},
                 "00320014 0000 01'q' 01'x' 03'a.#' 01 00000000");
  expect_payload(queue::Purge{0, "q", true}, "0032001e 0000 01'q' 01");
  expect_payload(queue::PurgeOk{7}, "0032001f 00000007");
  expect_payload(queue::Delete{0, "q", true, false, true}, "00320028 0000 01'q' 05");
  // unbind has no no-wait.
  expect_payload(queue::Unbind{0, "q", "x", "k", {}}, "00320032 0000 01'q' 01'x' 01'k' 00000000");
  expect_payload(queue::UnbindOk{}, "00320033");
}

TEST(MethodBytes, Basic) {
  expect_payload(basic::Qos{0, 10, true}, "003c000a 00000000 000a 01");
  expect_payload(basic::Consume{0, "q", "ct", false, true, false, true, Table{{"x-priority", 5}}},
                 "003c0014 0000 01'q' 02'ct' 0a 00000010 0a'x-priority''I'00000005");
  expect_payload(basic::Cancel{"ct", true}, "003c001e 02'ct' 01");
  expect_payload(basic::Publish{0, "x", "rk", true, false}, "003c0028 0000 01'x' 02'rk' 01");
  expect_payload(basic::Publish{0, "", "q", false, true}, "003c0028 0000 00 01'q' 02");
  expect_payload(basic::Return{312, "NO_ROUTE", "x", "rk"},
                 "003c0032 0138 08'NO_ROUTE' 01'x' 02'rk'");
  expect_payload(basic::Deliver{"ct", 7, true, "x", "rk"},
                 "003c003c 02'ct' 0000000000000007 01 01'x' 02'rk'");
  expect_payload(basic::Get{0, "q", true}, "003c0046 0000 01'q' 01");
  expect_payload(basic::GetOk{0x0102030405060708, false, "x", "rk", 5},
                 "003c0047 0102030405060708 00 01'x' 02'rk' 00000005");
  expect_payload(basic::GetEmpty{}, "003c0048 00");
  expect_payload(basic::Ack{9, true}, "003c0050 0000000000000009 01");
  expect_payload(basic::Reject{9, true}, "003c005a 0000000000000009 01");
  expect_payload(basic::RecoverAsync{true}, "003c0064 01");
  expect_payload(basic::Recover{false}, "003c006e 00");
  expect_payload(basic::RecoverOk{}, "003c006f");
  expect_payload(basic::Nack{9, true, false}, "003c0078 0000000000000009 01");
  expect_payload(basic::Nack{9, false, true}, "003c0078 0000000000000009 02");
}

TEST(MethodBytes, ConfirmAndTx) {
  expect_payload(confirm::Select{true}, "0055000a 01");
  expect_payload(confirm::SelectOk{}, "0055000b");
  expect_payload(tx::Select{}, "005a000a");
  expect_payload(tx::SelectOk{}, "005a000b");
  expect_payload(tx::Commit{}, "005a0014");
  expect_payload(tx::CommitOk{}, "005a0015");
  expect_payload(tx::Rollback{}, "005a001e");
  expect_payload(tx::RollbackOk{}, "005a001f");
}

TEST(MethodFrame, WholeFrame) {
  std::string out = "before";
  append_method(out, ChannelNumber(0x0102), basic::Ack{9, true});
  EXPECT_EQ(hex(out), hex(bytes("'before' 01 0102 0000000d 003c0050 0000000000000009 01 ce")));
}

// Unused bits of a bit octet say nothing.
TEST(MethodBytes, UnusedBitsAreIgnored) {
  const std::string payload = bytes("003c0050 0000000000000009 fe");
  EXPECT_FALSE(decode_method<basic::Ack>(payload)->multiple);
}

// No method has more than eight bits in a row, or bits in two places; the packing takes both.
struct ManyBits {
  static constexpr MethodId kId{99, 1};
  bool a = false, b = false, c = false, d = false, e = false, f = false, g = false, h = false,
       i = false;
  std::uint8_t number = 0;
  bool j = false;
};

TEST(MethodBytes, NinthBitOpensAnOctet) {
  ManyBits method;
  method.a = method.h = method.i = method.j = true;
  method.number = 0x55;
  expect_payload(method, "00630001 81 01 55 01");
}

TEST(MethodBytes, TableArgumentIsCheckedToItsEnd) {
  const char* bad[] = {
      "0032000a 0000 01'q' 00 00000005 01'k''t'01",             // longer than the payload
      "0032000a 0000 01'q' 00 00000004 01'k''?'01",             // unknown type
      "0032000a 0000 01'q' 00 0000000a 01'k''A'00000003'I'00",  // cut value in an array
      "0032000a 0000 ff'q' 00 00000000",  // queue name longer than the payload
  };
  for (const char* notation : bad) {
    const ExactCopy payload(bytes(notation));
    EXPECT_FALSE(decode_method<queue::Declare>(payload.view())) << notation;
  }
}

TEST(Content, HeaderFrame) {
  std::string out;
  append_content_header(out, ChannelNumber(3), 0x0102030405060708, bytes("1000 02"));
  EXPECT_EQ(hex(out), hex(bytes("02 0003 0000000f 003c 0000 0102030405060708 1000 02 ce")));
}

// Field report 97: no frame above frame_max, none at all for an empty body.
TEST(Content, BodyFrames) {
  for (const std::uint32_t frame_max : {4096u, 131072u}) {
    for (const std::size_t size :
         {0u, 1u, 4087u, 4088u, 4089u, 8176u, 8177u, 131064u, 131065u, 1u << 20}) {
      std::string body(size, '\0');
      for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + i / 256);
      std::string out;
      append_body(out, ChannelNumber(9), body, frame_max);

      FrameDecoder decoder(frame_max);
      std::string_view input = out;
      std::string back;
      std::size_t frames = 0;
      for (auto e = decoder.next(input); e.kind != FrameDecoder::Kind::need_more;
           e = decoder.next(input)) {
        ASSERT_EQ(e.kind, FrameDecoder::Kind::body);
        ASSERT_EQ(e.channel, ChannelNumber(9));
        ASSERT_LE(e.payload.size() + kFrameOverheadBytes, frame_max);
        back += e.payload;
        ++frames;
      }
      EXPECT_EQ(back, body);
      const std::size_t payload_max = frame_max - kFrameOverheadBytes;
      EXPECT_EQ(frames, (size + payload_max - 1) / payload_max) << size << " at " << frame_max;
    }
  }
  std::string out;
  EXPECT_DEATH(append_body(out, ChannelNumber(1), "x", 0), "frame_max_bytes");
}

}  // namespace
}  // namespace stoat::wire
