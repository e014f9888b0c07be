#include <gtest/gtest.h>

#include <string>

#include "tests/routing/topology.hpp"

namespace stoat::routing {
namespace {

using testing::Names;
using testing::Topology;
using wire::Array;
using wire::FieldValue;
using wire::Table;
using wire::Void;

struct HeadersCase {
  const char* name;
  Table arguments;
  Table headers;
  bool matches;
};

std::vector<HeadersCase> headers_cases() {
  const Table nested{{"k", "v"}, {"n", std::int32_t{1}}};
  const Table nested_reordered{{"n", std::int64_t{1}}, {"k", "v"}};
  return {
      {"no x-match means all: both", {{"a", 1}, {"b", 2}}, {{"a", 1}, {"b", 2}, {"c", 3}}, true},
      {"no x-match means all: one", {{"a", 1}, {"b", 2}}, {{"a", 1}}, false},
      {"no x-match means all: other value", {{"a", 1}, {"b", 2}}, {{"a", 1}, {"b", 3}}, false},
      {"all said", {{"x-match", "all"}, {"a", 1}}, {{"a", 1}}, true},
      {"any: one of two", {{"x-match", "any"}, {"a", 1}, {"b", 2}}, {{"b", 2}}, true},
      {"any: key with other value", {{"x-match", "any"}, {"a", 1}}, {{"a", 2}}, false},
      {"any: none", {{"x-match", "any"}, {"a", 1}, {"b", 2}}, {{"c", 1}}, false},
      {"all of no pairs", {}, {{"a", 1}}, true},
      {"all of no pairs, no headers", {{"x-match", "all"}}, {}, true},
      {"any of no pairs", {{"x-match", "any"}}, {{"a", 1}}, false},
      {"any of no pairs, no headers", {{"x-match", "any"}}, {}, false},
      {"nested table", {{"t", nested}}, {{"t", nested_reordered}}, true},
      {"nested table, less in it", {{"t", nested}}, {{"t", Table{{"k", "v"}}}}, false},
      {"nested table, more in it", {{"t", Table{{"k", "v"}}}}, {{"t", nested}}, false},
      {"array", {{"l", Array{1, "b"}}}, {{"l", Array{std::int64_t{1}, "b"}}}, true},
      {"array in another order", {{"l", Array{1, "b"}}}, {{"l", Array{"b", 1}}}, false},
      {"void asks for presence", {{"a", Void{}}}, {{"a", "anything"}}, true},
      {"void header is present", {{"a", Void{}}}, {{"a", Void{}}}, true},
      {"void, absent", {{"a", Void{}}}, {{"b", 1}}, false},
      {"void header equals no value", {{"a", 1}}, {{"a", Void{}}}, false},
      {"any with void", {{"x-match", "any"}, {"a", Void{}}, {"b", 1}}, {{"a", 0}}, true},
      {"integers of other width", {{"a", std::int8_t{5}}}, {{"a", std::int64_t{5}}}, true},
      {"number and text", {{"a", 1}}, {{"a", "1"}}, false},
      {"boolean", {{"a", true}}, {{"a", true}}, true},
      {"boolean and number", {{"a", true}}, {{"a", 1}}, false},
      {"text is case-sensitive", {{"a", "V"}}, {{"a", "v"}}, false},
      {"keys are case-sensitive", {{"A", 1}}, {{"a", 1}}, false},
      {"x- ignored by all", {{"x-foo", 1}, {"a", 1}}, {{"a", 1}}, true},
      {"x- ignored by any", {{"x-match", "any"}, {"x-foo", 1}, {"a", 1}}, {{"x-foo", 1}}, false},
      {"all of x- only is all of nothing", {{"x-foo", 1}}, {}, true},
      {"all-with-x", {{"x-match", "all-with-x"}, {"x-foo", 1}}, {{"x-foo", 1}}, true},
      {"all-with-x, absent",
       {{"x-match", "all-with-x"}, {"x-foo", 1}, {"a", 1}},
       {{"a", 1}},
       false},
      {"any-with-x", {{"x-match", "any-with-x"}, {"x-foo", 1}, {"a", 1}}, {{"x-foo", 1}}, true},
      {"x-match itself never", {{"x-match", "any-with-x"}}, {{"x-match", "any-with-x"}}, false},
      {"x-match itself never asked for", {{"x-match", "all-with-x"}}, {}, true},
      {"x without dash is a plain key", {{"xfoo", 1}}, {}, false},
      {"repeated header: the last one", {{"a", 2}}, {{"a", 1}, {"a", 2}}, true},
      {"repeated header: not the first", {{"a", 1}}, {{"a", 1}, {"a", 2}}, false},
      {"repeated argument: the last one", {{"a", 1}, {"a", 2}}, {{"a", 2}}, true},
      {"empty key", {{"", 1}}, {{"", 1}}, true},
  };
}

TEST(HeadersExchange, Cases) {
  for (const HeadersCase& c : headers_cases()) {
    SCOPED_TRACE(c.name);
    ASSERT_EQ(check_headers_binding(c.arguments), "");
    Topology t;
    t.declare("x", ExchangeType::headers);
    t.bind("x", "q", "", c.arguments);
    const Names expected = c.matches ? Names{"q"} : Names{};
    EXPECT_EQ(t.route_headers("x", c.headers), expected);
    EXPECT_EQ(t.route_headers("x", c.headers, "the.key.does.not.count"), expected);
  }
}

TEST(HeadersExchange, MessageWithoutHeadersMatchesAllOfNothingOnly) {
  Topology t;
  t.declare("x", ExchangeType::headers);
  t.bind("x", "everything", "", Table{});
  t.bind("x", "a", "", Table{{"a", 1}});
  t.bind("x", "any", "", Table{{"x-match", "any"}, {"a", 1}});
  const wire::PropertiesView no_properties{};
  EXPECT_EQ(t.route_message("x", "", {}, &no_properties), (Names{"everything"}));
  EXPECT_EQ(t.route_message("x", "", {}, nullptr), (Names{"everything"}));
  EXPECT_EQ(t.route_headers("x", Table{}), (Names{"everything"}));
  // Headers of a message before do not linger.
  EXPECT_EQ(t.route_headers("x", Table{{"a", 1}}), (Names{"a", "any", "everything"}));
  EXPECT_EQ(t.route_message("x", "", {}, nullptr), (Names{"everything"}));
}

TEST(HeadersExchange, ArgumentsIdentifyTheBinding) {
  Topology t;
  t.declare("x", ExchangeType::headers);
  EXPECT_TRUE(t.bind("x", "q", "", Table{{"a", 1}}));
  EXPECT_TRUE(t.bind("x", "q", "", Table{{"a", 2}}));
  EXPECT_TRUE(t.bind("x", "q", "", Table{{"x-match", "all"}, {"a", 1}}));
  EXPECT_TRUE(t.unbind("x", "q", "", Table{{"a", std::int8_t{1}}}));
  EXPECT_EQ(t.route_headers("x", Table{{"a", 1}}), (Names{"q"}));
  EXPECT_TRUE(t.unbind("x", "q", "", Table{{"a", 1}, {"x-match", "all"}}));
  EXPECT_EQ(t.route_headers("x", Table{{"a", 1}}), (Names{}));
  EXPECT_EQ(t.route_headers("x", Table{{"a", 2}}), (Names{"q"}));
}

TEST(HeadersExchange, ManyHeadersAndManyBindings) {
  Topology t;
  t.declare("x", ExchangeType::headers);
  constexpr int kBindings = 200;
  for (int i = 0; i < kBindings; ++i) {
    t.bind("x", "q" + std::to_string(i), "",
           Table{{"key" + std::to_string(i), i}, {"shared", "yes"}});
  }
  Table headers{{"shared", "yes"}};
  for (int i = 0; i < kBindings; i += 3) headers.set("key" + std::to_string(i), FieldValue(i));
  EXPECT_EQ(t.route_headers("x", headers).size(), (kBindings + 2u) / 3);
  headers.set("shared", "no");
  EXPECT_EQ(t.route_headers("x", headers), (Names{}));
}

TEST(CheckHeadersBinding, SaysWhatIsWrongWithXMatch) {
  for (const char* good : {"all", "any", "all-with-x", "any-with-x"}) {
    EXPECT_EQ(check_headers_binding(Table{{"x-match", good}}), "");
  }
  EXPECT_EQ(check_headers_binding(Table{}), "");
  EXPECT_EQ(check_headers_binding(Table{{"a", 1}}), "");
  EXPECT_EQ(check_headers_binding(Table{{"x-match", "foo"}}),
            "Invalid x-match field value 'foo'; expected all, any, all-with-x, or any-with-x");
  EXPECT_EQ(check_headers_binding(Table{{"x-match", std::int32_t{1}}}),
            "Invalid x-match field type signedint (value 1); expected longstr");
  for (const FieldValue& bad :
       {FieldValue(""), FieldValue("ALL"), FieldValue(Void{}), FieldValue(true),
        FieldValue(Array{"all"}), FieldValue(Table{}), FieldValue(wire::ByteArray{"all"})}) {
    EXPECT_NE(check_headers_binding(Table{{"x-match", bad}}), "") << bad.to_text();
  }
  EXPECT_NE(check_headers_binding(Table{{"x-match", "all"}, {"x-match", "foo"}}), "");
}

}  // namespace
}  // namespace stoat::routing
