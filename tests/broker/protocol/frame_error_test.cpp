// Broken frames and frames out of sequence: connection.close with the right code, then the end.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

std::string method_bytes(std::uint16_t channel, const auto& method) {
  std::string out;
  append_method(out, ChannelNumber(channel), method);
  return out;
}

std::string frame(std::uint8_t type, std::uint16_t channel, std::string_view payload) {
  std::string out;
  append_frame(out, type, ChannelNumber(channel), payload);
  return out;
}

std::string header(std::uint64_t body_size, std::uint16_t channel = 1) {
  std::string out;
  append_content_header(out, ChannelNumber(channel), body_size, "\0\0"sv);
  return out;
}

std::string publish() {
  return method_bytes(1, basic::Publish{0, "", "no such queue", false, false});
}

std::string with_bad_end(std::string bytes) {
  bytes.back() = '\xCD';
  return bytes;
}

// A content header whose class is queue's.
std::string header_of_another_class() {
  std::string out = header(1);
  out[8] = 50;
  return out;
}

struct FrameCase {
  const char* name;
  std::string bytes;  // sent on a connection whose channel 1 is open
  std::uint16_t code;
};

void PrintTo(const FrameCase& c, std::ostream* out) {
  *out << c.name;
}

class FrameErrors : public ProtocolTest, public testing::WithParamInterface<FrameCase> {};

TEST_P(FrameErrors, EndTheConnection) {
  ConnectOptions options;
  options.frame_max = 8192;
  WireClient client = connect(options);
  client.send_raw(GetParam().bytes);
  client.expect_connection_close(GetParam().code);
}

const FrameCase kFrameCases[] = {
    {"MethodWithABadEndMark", with_bad_end(method_bytes(1, channel::Flow{true})), 501},
    {"HeartbeatWithABadEndMark", with_bad_end(frame(8, 0, "")), 501},
    {"BodyWithABadEndMark", publish() + header(3) + with_bad_end(frame(3, 1, "abc")), 501},
    {"FrameTypeFour", frame(4, 1, "x"), 501},
    {"FrameTypeZero", frame(0, 0, ""), 501},
    {"FrameType255", frame(255, 1, "x"), 501},
    {"BodyFrameAboveFrameMax", publish() + header(9000) + frame(3, 1, std::string(8185 + 64, 'b')),
     501},
    {"MethodFrameAboveFrameMax", "\x01\0\x01\0\x20\0\0"s, 501},
    {"FrameOfFourGigabytesAnnounced", "\x03\0\x01\xff\xff\xff\xff"s, 501},
    {"ShortStringThatIsNotUtf8", frame(1, 1, "\0\x3c\0\x46\0\0\x02\xff\xfe\0"sv), 501},
    {"HeartbeatOnAChannel", frame(8, 1, ""), 505},
    {"MethodInPlaceOfTheHeader", publish() + method_bytes(1, basic::Get{0, "q", true}), 505},
    {"PublishInPlaceOfTheHeader", publish() + publish(), 505},
    {"MethodInPlaceOfTheBody", publish() + header(5) + method_bytes(1, channel::Flow{true}), 505},
    {"HeaderInPlaceOfTheBody", publish() + header(5) + header(5), 505},
    {"BodyInPlaceOfTheHeader", publish() + frame(3, 1, "abc"), 505},
    {"BodyWithoutAPublish", frame(3, 1, "abc"), 505},
    {"HeaderWithoutAPublish", header(5), 505},
    {"BodyAfterAMessageWithoutOne", publish() + header(0) + frame(3, 1, "abc"), 505},
    {"HeaderOfAnotherClass", publish() + header_of_another_class(), 505},
    {"SecondOpenOfAChannel", method_bytes(1, channel::Open{}), 504},
    {"MethodOnAClosedChannel", method_bytes(7, basic::Get{0, "q", true}), 504},
    {"PublishOnAClosedChannel",
     method_bytes(7, basic::Publish{0, "", "q", false, false}) + header(0, 7), 504},
    {"MethodsThatOnlyBrokersSend", method_bytes(1, queue::DeclareOk{"q", 0, 0}), 503},
    {"ConsumeOkFromAClient", method_bytes(1, basic::ConsumeOk{"tag"}), 503},
    {"CommitOkFromAClient", method_bytes(1, tx::CommitOk{}), 503},
};

INSTANTIATE_TEST_SUITE_P(All, FrameErrors, testing::ValuesIn(kFrameCases),
                         [](const auto& c) { return std::string(c.param.name); });

// What others answer in other ways, or not at all.
class FrameErrorsOfOurs : public ProtocolTest, public testing::WithParamInterface<FrameCase> {};

TEST_P(FrameErrorsOfOurs, EndTheConnection) {
  STOAT_OWN_CHOICE("others have another code for it, or none");
  WireClient client = connect();
  client.send_raw(GetParam().bytes);
  client.expect_connection_close(GetParam().code);
}

const FrameCase kOurFrameCases[] = {
    {"MoreBodyThanAnnounced", publish() + header(10) + frame(3, 1, "elevenbytes"), 505},
    {"MethodFrameTooShortForItsIds", frame(1, 1, "\0\x3c"sv), 501},
    {"MethodCutWithinAnArgument", frame(1, 1, "\0\x32\0\x0a\0\0\x05qu"sv), 501},
    {"HeaderFrameTooShort", publish() + frame(2, 1, "\0\x3c\0\0"sv), 501},
    {"UnknownClass", frame(1, 1, "\0\x63\0\x0a"sv), 503},
    {"UnknownMethod", frame(1, 1, "\0\x3c\0\x63"sv), 503},
    {"UnknownMethodOnChannelZero", frame(1, 0, "\0\x0a\0\x63"sv), 503},
    {"ContentOnChannelZero", frame(2, 0, std::string(14, '\0')), 505},
};

INSTANTIATE_TEST_SUITE_P(All, FrameErrorsOfOurs, testing::ValuesIn(kOurFrameCases),
                         [](const auto& c) { return std::string(c.param.name); });

class FrameErrorEnds : public ProtocolTest {};

TEST_F(FrameErrorEnds, TheSocketClosesThoughTheClientDoesNotAnswer) {
  STOAT_OWN_CHOICE("others wait half a minute for close-ok");
  WireClient client = connect();
  client.send_raw(frame(4, 1, "x"));
  EXPECT_EQ(client.expect<connection::Close>(0).reply_code, 501);
  EXPECT_TRUE(client.socket().receive_end(kReplyLimit)) << "no close-ok came, yet it must end";
}

TEST_F(FrameErrorEnds, WhatWasSentBeforeTheErrorIsDone) {
  WireClient client = connect();
  const std::string q = queue();
  client.declare_queue(1, q);
  std::string out;
  for (int i = 0; i < 10; ++i) {
    append_method(out, ChannelNumber(1), basic::Publish{0, "", q, false, false});
    append_content_header(out, ChannelNumber(1), 1, "\0\0"sv);
    append_body(out, ChannelNumber(1), "m", 4096);
  }
  client.send_raw(out + frame(4, 1, "x"));
  client.expect_connection_close(501);
  WireClient other = connect();
  EXPECT_TRUE(eventually([&] { return other.ready_count(1, q) == 10; }));
}

TEST_F(FrameErrorEnds, MalformedPropertiesAreRefusedAndNeverDelivered) {
  const std::string q = queue();
  WireClient other = connect();
  other.declare_queue(1, q);
  struct Case {
    const char* what;
    std::string_view properties;
  };
  const Case cases[] = {
      {"flags cut short", "\x80"sv},
      {"a content type longer than the frame", "\x80\0\xf0text"sv},
      {"a headers table longer than the frame", "\x20\0\0\0\xff\xff\x01kI"sv},
      {"an unknown field type", "\x20\0\0\0\0\x04\x01kZ\0"sv},
      {"bytes behind the list", "\x10\0\x02\x02\x02"sv},
  };
  STOAT_OWN_CHOICE("others do not look at properties that they need not read");
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    WireClient client = connect();
    client.send(1, basic::Publish{0, "", q, false, false});
    std::string out;
    append_content_header(out, ChannelNumber(1), 0, c.properties);
    client.send_raw(out);
    const auto close = client.expect<connection::Close>(0);
    EXPECT_TRUE(close.reply_code == 501 || close.reply_code == 502) << close.reply_code;
  }
  EXPECT_TRUE(other.drain(1, q).empty());
}

TEST_F(FrameErrorEnds, ATableNestedTooDeepIsRefused) {
  std::string table;  // entries, inside out
  for (int depth = 0; depth < 5000; ++depth) {
    std::string outer = "\x01k"s + "F";
    Writer(outer).long_string(table);
    table.swap(outer);
  }
  std::string payload;
  Writer writer(payload);
  writer.u16(50);
  writer.u16(10);
  writer.u16(0);
  writer.short_string("deep");
  writer.u8(0);
  writer.long_string(table);
  WireClient client = connect();
  client.send_raw(frame(1, 1, payload));
  STOAT_OWN_CHOICE("others nest without a limit");
  const auto close = client.expect<connection::Close>(0);
  EXPECT_TRUE(close.reply_code == 501 || close.reply_code == 502) << close.reply_code;
}

}  // namespace
}  // namespace stoat::test
