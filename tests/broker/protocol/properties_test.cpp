// What a publisher writes into the content header arrives byte for byte; what the broker reads
// there.

#include <limits>

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

class PropertiesTest : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    q_ = queue();
    client_->declare_queue(1, q_, {}, true);
  }
  // Publishes with these raw properties and returns those of the delivery.
  std::string through(std::string_view raw) {
    client_->send(1, basic::Publish{0, "", q_, false, false});
    client_->send_content(1, raw, "body");
    const auto message = client_->get(1, q_);
    return message ? message->raw_properties : "nothing came";
  }

  std::optional<WireClient> client_;
  std::string q_;
};

TEST_F(PropertiesTest, AllFourteenArriveAsTheyWere) {
  Properties all;
  all.content_type = "application/json";
  all.content_encoding = "gzip";
  all.headers = Table{{"k", "v"}};
  all.delivery_mode = 2;
  all.priority = 7;
  all.correlation_id = "correlation";
  all.reply_to = "reply";
  all.expiration = "600000";
  all.message_id = std::string(255, 'i');
  all.timestamp = std::numeric_limits<std::uint64_t>::max();
  all.type = "type";
  all.user_id = "guest";
  all.app_id = "app";
  all.cluster_id = "cluster";
  EXPECT_EQ(through(all.encode()), all.encode());
  EXPECT_EQ(through(Properties{}.encode()), Properties{}.encode());
}

TEST_F(PropertiesTest, EachOneAloneArrivesAsItWas) {
  std::vector<Properties> each(14);
  each[0].content_type = "";
  each[1].content_encoding = "x";
  each[2].headers = Table{};
  each[3].delivery_mode = 1;
  each[4].priority = 255;
  each[5].correlation_id = "c";
  each[6].reply_to = "r";
  each[7].expiration = "100000";
  each[8].message_id = "m";
  each[9].timestamp = 0;
  each[10].type = "t";
  each[11].user_id = "guest";
  each[12].app_id = "a";
  each[13].cluster_id = "c";
  for (const Properties& one : each) EXPECT_EQ(through(one.encode()), one.encode());
}

TEST_F(PropertiesTest, EveryFieldTypeArrivesByteForByte) {
  Properties properties;
  properties.headers = Table{
      {"void", Void{}},
      {"bool", true},
      {"int8", std::int8_t{-128}},
      {"uint8", std::uint8_t{255}},
      {"int16", std::int16_t{-32768}},
      {"uint16", std::uint16_t{65535}},
      {"int32", std::numeric_limits<std::int32_t>::min()},
      {"uint32", std::numeric_limits<std::uint32_t>::max()},
      {"int64", std::numeric_limits<std::int64_t>::min()},
      {"float", 1.5f},
      {"double", -0.0},
      {"decimal", Decimal{3, 4'000'000'000u}},
      {"string", "text with \0 inside"s},
      {"bytes", ByteArray{"\xff\xfe\0"s}},
      {"timestamp", Timestamp{1'700'000'000}},
      {"array", Array{1, "two", Array{}, Table{{"three", Void{}}}}},
      {"table", Table{{"inner", Table{{"innermost", Array{true, false}}}}, {"", "empty key"}}},
      {std::string(255, 'k'), "longest key"},
  };
  const std::string raw = properties.encode();
  EXPECT_EQ(through(raw), raw);
}

TEST_F(PropertiesTest, OddButLegalBytesAreNotTidiedUp) {
  STOAT_OWN_CHOICE("headers travel unchanged; others rewrite or refuse these");
  for (const std::string_view entries : {
           "\x01kI\0\0\0\x01\x01kI\0\0\0\x02"sv,        // the same key twice
           "\x01tt\x07"sv,                              // a bool that is neither 0 nor 1
           "\x01nL\xff\xff\xff\xff\xff\xff\xff\xfb"sv,  // a 64-bit integer as old py-amqp writes it
           "\x01nd\x7f\xf8\0\0\0\0\0\1"sv,              // not a number
       }) {
    std::string raw = "\x20\0"s;
    Writer(raw).long_string(entries);
    EXPECT_EQ(through(raw), raw);
  }
}

TEST_F(PropertiesTest, BigHeadersGoThrough) {
  Table headers;
  for (int i = 0; i < 1000; ++i)
    headers.append("key " + std::to_string(i), std::string(100, static_cast<char>('a' + i % 26)));
  Properties properties;
  properties.headers = headers;  // about 116 KB: just below frame_max
  EXPECT_EQ(through(properties.encode()), properties.encode());
}

TEST_F(PropertiesTest, DeliveryModesOtherThanTwoAreTransientAndKept) {
  STOAT_OWN_CHOICE("others refuse modes that they do not know");
  for (const int mode : {0, 1, 3, 255}) {
    Properties properties;
    properties.delivery_mode = static_cast<std::uint8_t>(mode);
    EXPECT_EQ(through(properties.encode()), properties.encode()) << mode;
  }
}

TEST_F(PropertiesTest, AForeignUserIdIsRefused) {
  Properties properties;
  properties.user_id = "somebody else";
  client_->publish(1, "", q_, "m", properties);
  client_->expect_channel_close(1, 406);
  client_->open_channel(1);
  EXPECT_FALSE(client_->get(1, q_));
}

TEST_F(PropertiesTest, ExpirationMustBeANumber) {
  for (const char* bad : {"abc", "-1", "10x", "", " 5", "1.5", "99999999999999999999"}) {
    Properties properties;
    properties.expiration = bad;
    client_->publish(1, "", q_, "m", properties);
    client_->expect_channel_close(1, 406);
    client_->open_channel(1);
  }
  EXPECT_FALSE(client_->get(1, q_));
  Properties properties;
  properties.expiration = "3600000";
  EXPECT_EQ(through(properties.encode()), properties.encode());
}

TEST_F(PropertiesTest, CcAndBccMustBeArraysOfStrings) {
  for (const char* header : {"CC", "BCC"}) {
    for (const FieldValue& bad : {FieldValue(q_), FieldValue(1), FieldValue(Table{})}) {
      Properties properties;
      properties.headers = Table{{header, bad}};
      client_->publish(1, "", q_, "m", properties);
      client_->expect_channel_close(1, 406);
      client_->open_channel(1);
    }
  }
  EXPECT_FALSE(client_->get(1, q_));
}

TEST_F(PropertiesTest, MessagesAboveTheMaximumAreRefused) {
  STOAT_NEEDS_OWN_BROKER();
  TestBroker broker([](broker::Config& config) { config.max_message_bytes = 10'000; });
  WireClient client(broker.port(), ConnectOptions{});
  client.declare_queue(1, "q");
  client.publish(1, "", "q", std::string(10'000, 'b'));
  EXPECT_EQ(client.get(1, "q")->body.size(), 10'000u);
  // Refused from the header on, whether the body comes or not.
  client.publish(1, "", "q", std::string(10'001, 'b'));
  EXPECT_TRUE(client.expect_channel_close(1, 406).starts_with("PRECONDITION_FAILED - "));
  client.open_channel(1);
  client.send(1, basic::Publish{0, "", "q", false, false});
  std::string header;
  append_content_header(header, ChannelNumber(1), ~std::uint64_t{0}, "\0\0"sv);
  client.send_raw(header);
  client.expect_channel_close(1, 406);
  client.open_channel(1);
  EXPECT_FALSE(client.get(1, "q"));
}

TEST_F(PropertiesTest, ALyingBodySizeAllocatesNothing) {
  // 100 MB announced on many channels, three bytes sent: memory follows what is sent.
  for (std::uint16_t channel = 2; channel < 400; ++channel) {
    client_->open_channel(channel);
    client_->send(channel, basic::Publish{0, "", q_, false, false});
    std::string out;
    append_content_header(out, ChannelNumber(channel), 100u << 20, "\0\0"sv);
    append_body(out, ChannelNumber(channel), "abc", 4096);
    client_->send_raw(out);
  }
  client_->publish(1, "", q_, "whole");
  EXPECT_EQ(client_->get(1, q_)->body, "whole");
}

}  // namespace
}  // namespace stoat::test
