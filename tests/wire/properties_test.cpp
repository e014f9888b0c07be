#include "wire/properties.hpp"

#include <gtest/gtest.h>

#include "tests/wire/allocation_probe.hpp"
#include "tests/wire/bytes.hpp"

namespace stoat::wire {
namespace {

using test::bytes;
using test::ExactCopy;
using test::hex;

struct Case {
  const char* name;
  const char* wire;  // flags and list
  void (*set)(Properties&);
};

const Case kSingles[] = {
    {"none", "0000", [](Properties&) {}},
    {"content_type", "8000 0a'text/plain'", [](Properties& p) { p.content_type = "text/plain"; }},
    {"content_encoding", "4000 04'gzip'", [](Properties& p) { p.content_encoding = "gzip"; }},
    {"headers", "2000 00000007 01'k''I'00000005",
     [](Properties& p) {
       p.headers = Table{{"k", 5}};
     }},
    {"headers empty", "2000 00000000", [](Properties& p) { p.headers = Table{}; }},
    {"delivery_mode", "1000 02", [](Properties& p) { p.delivery_mode = 2; }},
    {"priority", "0800 09", [](Properties& p) { p.priority = 9; }},
    {"correlation_id", "0400 02'c1'", [](Properties& p) { p.correlation_id = "c1"; }},
    {"reply_to", "0200 02'rt'", [](Properties& p) { p.reply_to = "rt"; }},
    {"expiration", "0100 05'60000'", [](Properties& p) { p.expiration = "60000"; }},
    {"message_id", "0080 02'm1'", [](Properties& p) { p.message_id = "m1"; }},
    {"timestamp", "0040 000000006553f100", [](Properties& p) { p.timestamp = 1700000000; }},
    {"type", "0020 01't'", [](Properties& p) { p.type = "t"; }},
    {"user_id", "0010 05'guest'", [](Properties& p) { p.user_id = "guest"; }},
    {"app_id", "0008 03'app'", [](Properties& p) { p.app_id = "app"; }},
    {"cluster_id", "0004 00", [](Properties& p) { p.cluster_id = ""; }},
};

const Case kAll = {
    "all",
    "fffc 0a'text/plain' 04'gzip' 00000007 01'k''I'00000005 02 09 02'c1' 02'rt' 05'60000' 02'm1' "
    "000000006553f100 01't' 05'guest' 03'app' 00",
    [](Properties& p) {
      for (const Case& single : kSingles) {
        if (std::string_view(single.name) != "headers empty") single.set(p);
      }
    }};

void check_both_directions(const Case& c) {
  Properties properties;
  c.set(properties);
  EXPECT_EQ(hex(properties.encode()), hex(bytes(c.wire))) << c.name;

  const ExactCopy raw(bytes(c.wire));
  const PropertiesView view(raw.view());
  ASSERT_TRUE(view.ok()) << c.name;
  EXPECT_EQ(view.raw(), raw.view());
  EXPECT_EQ(hex(view.parse().encode()), hex(raw.view())) << c.name;
}

TEST(Properties, EachAloneAndNone) {
  for (const Case& c : kSingles) check_both_directions(c);
}

TEST(Properties, AllTogether) {
  check_both_directions(kAll);
}

TEST(Properties, EveryPair) {
  for (const Case& a : kSingles) {
    for (const Case& b : kSingles) {
      Properties properties;
      a.set(properties);
      b.set(properties);
      const std::string raw = properties.encode();
      const PropertiesView view(raw);
      ASSERT_TRUE(view.ok()) << a.name << " and " << b.name;
      ASSERT_EQ(hex(view.parse().encode()), hex(raw)) << a.name << " and " << b.name;
    }
  }
}

TEST(PropertiesView, AccessorsWhenAllArePresent) {
  const std::string raw = bytes(kAll.wire);
  const PropertiesView view(raw);
  EXPECT_EQ(view.delivery_mode(), 2);
  EXPECT_TRUE(view.persistent());
  EXPECT_EQ(view.priority(), 9);
  EXPECT_EQ(view.expiration(), "60000");
  EXPECT_EQ(view.user_id(), "guest");
  EXPECT_EQ(view.reply_to(), "rt");
  EXPECT_EQ(view.message_id(), "m1");
  EXPECT_EQ(view.correlation_id(), "c1");
  EXPECT_TRUE(view.has_headers());
  EXPECT_EQ(hex(view.raw_headers()), hex(bytes("01'k''I'00000005")));
}

void expect_all_absent(const PropertiesView& view) {
  EXPECT_EQ(view.delivery_mode(), 0);
  EXPECT_FALSE(view.persistent());
  EXPECT_EQ(view.priority(), std::nullopt);
  EXPECT_EQ(view.expiration(), std::nullopt);
  EXPECT_EQ(view.user_id(), std::nullopt);
  EXPECT_EQ(view.reply_to(), std::nullopt);
  EXPECT_EQ(view.message_id(), std::nullopt);
  EXPECT_EQ(view.correlation_id(), std::nullopt);
  EXPECT_FALSE(view.has_headers());
  EXPECT_EQ(view.raw_headers(), "");
}

TEST(PropertiesView, AccessorsWhenNoneIs) {
  const PropertiesView view;
  EXPECT_TRUE(view.ok());
  EXPECT_EQ(hex(view.raw()), hex(bytes("0000")));
  expect_all_absent(view);
  expect_all_absent(PropertiesView(std::string_view("\0\0", 2)));
  EXPECT_EQ(hex(view.parse().encode()), hex(bytes("0000")));
}

TEST(PropertiesView, PresentButEmptyIsNotAbsent) {
  const std::string raw = bytes("2110 00000000 00 00");
  const PropertiesView view(raw);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view.has_headers());
  EXPECT_EQ(view.raw_headers(), "");
  EXPECT_EQ(view.expiration(), "");
  EXPECT_EQ(view.user_id(), "");
  EXPECT_EQ(view.reply_to(), std::nullopt);
}

TEST(PropertiesView, DeliveryModesOtherThanTwoAreTransient) {
  for (const char* wire : {"1000 00", "1000 01", "1000 03", "1000 ff"}) {
    const std::string raw = bytes(wire);
    const PropertiesView view(raw);
    EXPECT_TRUE(view.ok());
    EXPECT_FALSE(view.persistent()) << wire;
  }
}

TEST(PropertiesView, MalformedIsNotOk) {
  const struct {
    const char* name;
    const char* wire;
  } cases[] = {
      {"nothing", ""},
      {"half a flag word", "00"},
      {"a byte left over", "0000 00"},
      {"a byte left over behind a property", "1000 02 00"},
      {"a second flag word announced", "0001"},
      {"a second flag word", "0001 0000"},
      {"a second flag word cut", "0001 00"},
      {"a second flag word with properties", "1001 0000 02"},
      {"the flag that means nothing", "0002"},
      {"the flag that means nothing, with a value", "0002 00"},
      {"both", "0003"},
      {"short string cut", "8000 05'text'"},
      {"short string of no text", "8000 ff"},
      {"delivery mode missing", "1000"},
      {"second value missing", "1800 02"},
      {"timestamp cut", "0040 00000000000000"},
      {"headers without length", "2000 0000"},
      {"headers of 4 GiB", "2000 ffffffff 01'k''V'"},
      {"headers longer than the list", "2000 00000004 01'k''V'"},
      {"headers with an unknown type", "2000 00000004 01'k''?'00"},
      {"headers malformed in a nested array", "2000 0000000a 01'k''A'00000003'S'0000"},
      {"headers nested table cut", "2000 0000000b 01'k''F'00000004 01'j''I'"},
  };
  for (const auto& c : cases) {
    const ExactCopy raw(bytes(c.wire));
    const PropertiesView view(raw.view());
    EXPECT_FALSE(view.ok()) << c.name;
    expect_all_absent(view);
  }
}

TEST(PropertiesView, EveryTruncationIsNotOk) {
  const std::string whole = bytes(kAll.wire);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExactCopy raw(whole.substr(0, size));
    const PropertiesView view(raw.view());
    ASSERT_FALSE(view.ok()) << size;
    expect_all_absent(view);
  }
}

// It runs once per publish.
TEST(PropertiesView, CheckingAllocatesNothing) {
  const std::string raw = bytes(kAll.wire);
  test::AllocationProbe probe;
  const PropertiesView view(raw);
  EXPECT_TRUE(view.persistent() && view.expiration() && view.has_headers());
  EXPECT_EQ(probe.total_bytes(), 0u);
}

TEST(Properties, ShortStringThatIsTooLongIsOurOwnBug) {
  Properties properties;
  properties.app_id = std::string(255, 'a');
  EXPECT_EQ(properties.encode().size(), 2u + 256);
  properties.app_id = std::string(256, 'a');
  EXPECT_DEATH((void)properties.encode(), "255");
}

TEST(ContentHeader, Decodes) {
  const std::string raw = bytes("003c 0000 0000000000010000 1000 02");
  const auto header = ContentHeader::decode(raw);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->class_id, 60);
  EXPECT_EQ(header->body_size, 65536u);
  EXPECT_EQ(hex(header->properties), hex(bytes("1000 02")));
  // A body size is only a number here, whatever it announces.
  EXPECT_EQ(ContentHeader::decode(bytes("003c 0000 ffffffffffffffff 0000"))->body_size, ~0ull);
}

TEST(ContentHeader, CutShort) {
  const std::string whole = bytes("003c 0000 0000000000010000 1000 02");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExactCopy raw(whole.substr(0, size));
    const auto header = ContentHeader::decode(raw.view());
    ASSERT_EQ(header.has_value(), size >= 12) << size;
    // The properties' own check finds what is missing behind the fixed part.
    if (header) {
      EXPECT_FALSE(PropertiesView(header->properties).ok()) << size;
    }
  }
}

}  // namespace
}  // namespace stoat::wire
