#include "broker/arguments_json.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "broker/arguments_digest.hpp"
#include "broker/json_fields.hpp"
#include "wire/writer.hpp"

namespace stoat::broker {
namespace {

using wire::Array;
using wire::FieldValue;
using wire::Table;

std::string written(const Table& table) {
  return boost::json::serialize(to_json(table));
}

std::string on_the_wire(const Table& table) {
  std::string bytes;
  wire::Writer(bytes).table(table);
  return bytes;
}

Table through_json(const Table& table) {
  return table_from_json(parse_json(written(table)), "arguments");
}

FieldValue capital_long(std::int64_t number) {
  FieldValue value = number;
  value.long_as_capital = true;
  return value;
}

struct TypeCase {
  std::string name;
  FieldValue value;
  std::string json;
};

std::vector<TypeCase> type_cases() {
  return {
      {"void", wire::Void{}, "null"},
      {"true", true, "true"},
      {"false", false, "false"},
      {"byte", std::int8_t{-128}, R"({"type":"byte","value":-128})"},
      {"unsignedbyte", std::uint8_t{255}, R"({"type":"unsignedbyte","value":255})"},
      {"short", std::int16_t{-2}, R"({"type":"short","value":-2})"},
      {"unsignedshort", std::uint16_t{65535}, R"({"type":"unsignedshort","value":65535})"},
      {"signedint", std::int32_t{10}, R"({"type":"signedint","value":10})"},
      {"unsignedint", std::uint32_t{4294967295u}, R"({"type":"unsignedint","value":4294967295})"},
      {"long", std::int64_t{10}, "10"},
      {"largest long", std::numeric_limits<std::int64_t>::max(), "9223372036854775807"},
      {"smallest long", std::numeric_limits<std::int64_t>::min(), "-9223372036854775808"},
      {"capital long", capital_long(7), R"({"type":"capital_long","value":7})"},
      {"float", 0.1f, R"({"type":"float","value":"0.1"})"},
      {"double", 0.1, R"({"type":"double","value":"0.1"})"},
      {"double with all digits", 1.7976931348623157e308,
       R"({"type":"double","value":"1.7976931348623157e+308"})"},
      {"infinity", -std::numeric_limits<double>::infinity(), R"({"type":"double","value":"-inf"})"},
      {"decimal", wire::Decimal{2, 314}, R"({"type":"decimal","value":{"scale":2,"digits":314}})"},
      {"text", "x-yz", R"("x-yz")"},
      {"text beyond ASCII", "žluťoučký 🦦", R"("žluťoučký 🦦")"},
      {"text with control characters", std::string("a\0\n\"", 4), R"("a\u0000\n\"")"},
      {"bytes as longstr", std::string("\xff"), R"({"type":"longstr","base64":"/w=="})"},
      {"binary", wire::ByteArray{std::string("\0\1\2", 3)}, R"({"type":"binary","base64":"AAEC"})"},
      {"timestamp", wire::Timestamp{18446744073709551615u},
       R"({"type":"timestamp","value":18446744073709551615})"},
      {"array", Array{FieldValue(std::int32_t{1}), FieldValue("b")},
       R"([{"type":"signedint","value":1},"b"])"},
      {"empty array", Array{}, "[]"},
      {"table", Table{{"b", "1"}, {"a", std::int64_t{2}}}, R"({"b":"1","a":2})"},
      {"empty table", Table{}, "{}"},
      {"table like a typed value", Table{{"type", "signedint"}, {"value", std::int64_t{1}}},
       R"({"type":"table","value":[["type","signedint"],["value",1]]})"},
      {"table with a repeated key", Table{{"k", true}, {"k", false}},
       R"({"type":"table","value":[["k",true],["k",false]]})"},
      {"table with bytes for a key", Table{{"\xfe", true}},
       R"({"type":"table","value":[[{"type":"longstr","base64":"/g=="},true]]})"},
  };
}

TEST(ArgumentsJson, EveryTypeIsReadableAndComesBackByteForByte) {
  for (const TypeCase& c : type_cases()) {
    SCOPED_TRACE(c.name);
    const Table table{{"argument", c.value}};
    EXPECT_EQ(written(table), R"({"argument":)" + c.json + "}");
    EXPECT_EQ(on_the_wire(through_json(table)), on_the_wire(table));
  }
}

TEST(ArgumentsJson, NaNStaysNaN) {
  const Table back = through_json({{"n", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_TRUE(std::isnan(std::get<double>(back.find("n")->value)));
}

TEST(ArgumentsJson, ATableThatIsTheWholeMayTakeAnyForm) {
  const Table repeated{{"k", std::int8_t{1}}, {"k", std::int8_t{2}}};
  EXPECT_EQ(on_the_wire(through_json(repeated)), on_the_wire(repeated));
}

TEST(ArgumentsJson, NestsAsDeepAsTheWireAllows) {
  // One more level is what the decoder refuses too. Repeated keys make the deepest JSON.
  const auto nested = [](int levels) {
    Table table{{"k", true}, {"k", false}};
    for (int i = 1; i < levels; ++i) table = Table{{"k", true}, {"k", table}};
    return table;
  };
  const Table deepest = nested(wire::kMaxTableDepth);
  EXPECT_EQ(on_the_wire(through_json(deepest)), on_the_wire(deepest));
  EXPECT_THROW(through_json(nested(wire::kMaxTableDepth + 1)), JsonMistake);
}

TEST(ArgumentsJson, ReadsWhatRabbitMqWrites) {
  const Table table = table_from_json(
      parse_json(R"({"x-max-length": 10, "f": 1.5, "e": 1e3, "b": true, "s": "t", "n": null,
                     "t": {"type": "unknown", "value": 1}, "u": {"type": "byte", "x": 1}})"),
      "arguments");
  EXPECT_EQ(table.find("x-max-length")->type_octet(), 'l');
  EXPECT_EQ(std::get<double>(table.find("f")->value), 1.5);
  EXPECT_EQ(std::get<double>(table.find("e")->value), 1000);
  EXPECT_EQ(table.find("t")->type_octet(), 'F');
  EXPECT_EQ(table.find("t")->as_table()->find("value")->as_integer(), 1);
  EXPECT_EQ(table.find("u")->type_octet(), 'F');
}

TEST(ArgumentsJson, MistakesNameTheKey) {
  struct {
    std::string json;
    std::string text;
  } const cases[] = {
      {R"([])", "arguments must be an object"},
      {R"(3)", "arguments must be an object"},
      {R"({"a": 18446744073709551615})", "arguments 'a' does not fit a signed 64-bit integer"},
      {R"({"a": {"b": {"type": "byte", "value": 128}}})",
       "arguments 'a' 'b' does not fit its type"},
      {R"({"a": {"type": "byte", "value": "1"}})", "arguments 'a' does not fit its type"},
      {R"({"a": {"type": "timestamp", "value": -1}})", "arguments 'a' does not fit its type"},
      {R"({"a": {"type": "double", "value": "1,5"}})", "arguments 'a' is no number"},
      {R"({"a": {"type": "double", "value": true}})", "arguments 'a' is no number"},
      {R"({"a": {"type": "binary", "base64": "%"}})", "arguments 'a' is no base64"},
      {R"({"a": {"type": "table", "value": [["k"]]}})", "arguments 'a' must be a list of pairs"},
      {R"({"a": {"type": "table", "value": [[1, 2]]}})",
       "arguments 'a' must be a list of pairs, each beginning with its key"},
      {R"({"a": {"type": "decimal", "value": {"scale": 256, "digits": 1}}})",
       "arguments 'a' does not fit its type"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.json);
    try {
      table_from_json(parse_json(c.json), "arguments");
      ADD_FAILURE() << "was taken";
    } catch (const JsonMistake& mistake) {
      EXPECT_EQ(mistake.what(), c.text);
    }
  }
  const std::string long_key(256, 'k');
  EXPECT_THROW(table_from_json(parse_json("{\"" + long_key + "\": 1}"), ""), JsonMistake);
}

TEST(ArgumentsJson, PlainFormShowsValuesOnly) {
  const FieldValue value = Table{{"i", std::int8_t{5}},
                                 {"d", 1.5},
                                 {"a", Array{FieldValue(std::uint16_t{1})}},
                                 {"t", wire::Timestamp{9}},
                                 {"s", "x"}};
  const boost::json::value expected{
      {"i", 5}, {"d", 1.5}, {"a", boost::json::array{1}}, {"t", 9u}, {"s", "x"}};
  EXPECT_EQ(to_plain_json(value), expected);
}

TEST(ParseJson, MistakesNameLineAndColumn) {
  struct {
    std::string json;
    std::string start;
  } const cases[] = {{"{\n  \"a\": tru,\n}", "line 2, column "},
                     {"{}\n x", "line 2, column 2: text after the document"},
                     {"", "line 1, column 1: "},
                     {"\"\xff\"", "line 1, column "}};
  for (const auto& c : cases) {
    try {
      parse_json(c.json);
      ADD_FAILURE() << c.json << " was taken";
    } catch (const JsonMistake& mistake) {
      EXPECT_TRUE(std::string(mistake.what()).starts_with(c.start)) << mistake.what();
    }
  }
  EXPECT_THROW(parse_json(std::string(kMaxJsonDepth + 1, '[')), JsonMistake);
  EXPECT_EQ(parse_json("{} \n"), boost::json::value(boost::json::object{}));
}

TEST(ArgumentsDigest, IsTheSameExactlyForEqualArguments) {
  const Table tables[] = {
      {{"n", std::int8_t{10}}},
      {{"n", std::uint32_t{10}}},
      {{"n", capital_long(10)}},
      {{"n", "10"}},
      {{"n", 10.0}},
      {{"n", 10.0f}},
      {{"n", 0.0}},
      {{"n", -0.0}},
      {{"n", std::numeric_limits<double>::quiet_NaN()}},
      {{"n", -std::numeric_limits<float>::quiet_NaN()}},
      {{"n", wire::Void{}}},
      {{"m", wire::Void{}}},
      {{"n", true}},
      {{"n", wire::ByteArray{"10"}}},
      {{"n", wire::Timestamp{10}}},
      {{"n", wire::Decimal{0, 10}}},
      {{"n", wire::Decimal{1, 100}}},
      {{"a", std::int8_t{1}}, {"b", std::int8_t{2}}},
      {{"b", std::int64_t{2}}, {"a", std::int64_t{1}}},
      {{"b", std::int64_t{3}}, {"a", std::int64_t{1}}, {"b", std::int64_t{2}}},
      {{"n", Table{{"a", std::int8_t{1}}}}},
      {{"n", Table{{"a", std::int16_t{1}}}}},
      {{"n", Table{}}},
      {{"n", Array{}}},
      {{"n", Array{FieldValue(std::int8_t{1}), FieldValue("2")}}},
      {{"n", Array{FieldValue(std::int64_t{1}), FieldValue("2")}}},
      {{"n", Array{FieldValue("2"), FieldValue(std::int64_t{1})}}},
      {{"n", Array{FieldValue(Array{}), FieldValue(Array{})}}},
      {{"n", Array{FieldValue(Array{FieldValue(Array{})})}}},
      {},
  };
  for (const Table& a : tables) {
    for (const Table& b : tables) {
      EXPECT_EQ(arguments_digest(a) == arguments_digest(b), wire::equivalent(a, b))
          << FieldValue(a).to_text() << " and " << FieldValue(b).to_text();
    }
  }
  EXPECT_EQ(arguments_digest({}), "");
  EXPECT_EQ(arguments_digest({{"n", true}}).size(), 32u);
}

}  // namespace
}  // namespace stoat::broker
