#include "wire/field_value.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "tests/wire/bytes.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

namespace stoat::wire {
namespace {

using test::bytes;
using test::hex;

FieldValue capital_long(std::int64_t number) {
  FieldValue value = number;
  value.long_as_capital = true;
  return value;
}

struct Case {
  const char* name;
  FieldValue value;
  const char* wire;  // type octet and value
  const char* type_name;
  const char* text;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"void", Void{}, "'V'", "void", "undefined"},
      {"true", true, "'t'01", "bool", "true"},
      {"false", false, "'t'00", "bool", "false"},
      {"int8 lowest", std::int8_t{-128}, "'b'80", "byte", "-128"},
      {"int8 -1", std::int8_t{-1}, "'b'ff", "byte", "-1"},
      {"uint8 highest", std::uint8_t{255}, "'B'ff", "unsignedbyte", "255"},
      {"int16 lowest", std::int16_t{-32768}, "'s'8000", "short", "-32768"},
      {"int16 order", std::int16_t{0x0102}, "'s'0102", "short", "258"},
      {"uint16 highest", std::uint16_t{65535}, "'u'ffff", "unsignedshort", "65535"},
      {"int32", 5, "'I'00000005", "signedint", "5"},
      {"int32 order", 0x01020304, "'I'01020304", "signedint", "16909060"},
      {"int32 lowest", std::numeric_limits<std::int32_t>::min(), "'I'80000000", "signedint",
       "-2147483648"},
      {"uint32 highest", std::uint32_t{4294967295}, "'i'ffffffff", "unsignedint", "4294967295"},
      {"int64", std::int64_t{0x0102030405060708}, "'l'0102030405060708", "long",
       "72623859790382856"},
      {"int64 lowest", std::numeric_limits<std::int64_t>::min(), "'l'8000000000000000", "long",
       "-9223372036854775808"},
      {"int64 as L", capital_long(-2), "'L'fffffffffffffffe", "long", "-2"},
      {"float", 1.5f, "'f'3fc00000", "float", "1.5"},
      {"float whole", 2.0f, "'f'40000000", "float", "2.0"},
      {"double", 0.1, "'d'3fb999999999999a", "double", "0.1"},
      {"double infinity", std::numeric_limits<double>::infinity(), "'d'7ff0000000000000", "double",
       "inf"},
      {"double large", 1e300, "'d'7e37e43c8800759c", "double", "1e+300"},
      {"decimal", Decimal{2, 314}, "'D'02 0000013a", "decimal", "3.14"},
      {"decimal below one", Decimal{3, 7}, "'D'03 00000007", "decimal", "0.007"},
      {"decimal whole", Decimal{0, 4294967295}, "'D'00 ffffffff", "decimal", "4294967295"},
      {"string", "abc", "'S'00000003 'abc'", "longstr", "abc"},
      {"string empty", "", "'S'00000000", "longstr", ""},
      {"string not text", std::string("\0\xff", 2), "'S'00000002 00ff", "longstr",
       nullptr},  // its text has a NUL: compared on its own
      {"bytes", ByteArray{std::string("\0\xff\x10", 3)}, "'x'00000003 00ff10", "binary",
       "0x00ff10"},
      {"timestamp", Timestamp{1700000000}, "'T'000000006553f100", "timestamp", "1700000000"},
      {"timestamp highest", Timestamp{std::numeric_limits<std::uint64_t>::max()},
       "'T'ffffffffffffffff", "timestamp", "18446744073709551615"},
      {"array empty", Array{}, "'A'00000000", "array", "[]"},
      {"array", Array{FieldValue(true), FieldValue(1), FieldValue(Array{FieldValue("x")})},
       "'A'00000012 't'01 'I'00000001 'A'00000006 'S'00000001'x'", "array", "[true, 1, [x]]"},
      {"table empty", Table{}, "'F'00000000", "table", "{}"},
      {"table", Table{{"k", "v"}, {"", Void{}}}, "'F'0000000a 01'k''S'00000001'v' 00'V'", "table",
       "{k: v, : undefined}"},
      {"table in table", Table{{"a", Table{{"b", false}}}},
       "'F'0000000b 01'a''F'00000004 01'b''t'00", "table", "{a: {b: false}}"},
  };
  return all;
}

// A table with the value under the key "k", as bytes.
std::string table_with(std::string_view value_bytes) {
  std::string out;
  Writer(out).long_string(bytes("01'k'") + std::string(value_bytes));
  return out;
}

TEST(FieldValue, EncodesExactly) {
  for (const Case& c : cases()) {
    std::string out;
    Writer(out).field_value(c.value);
    EXPECT_EQ(hex(out), hex(bytes(c.wire))) << c.name;
  }
}

TEST(FieldValue, DecodesAndEncodesBackExactly) {
  for (const Case& c : cases()) {
    const test::ExactCopy wire(table_with(bytes(c.wire)));
    Reader in(wire.view());
    const Table table = in.table();
    ASSERT_TRUE(in.ok() && in.at_end()) << c.name;
    ASSERT_EQ(table.size(), 1u) << c.name;
    EXPECT_EQ(table.find("k")->value.index(), c.value.value.index()) << c.name;
    EXPECT_TRUE(equivalent(*table.find("k"), c.value)) << c.name;
    std::string out;
    Writer(out).table(table);
    EXPECT_EQ(hex(out), hex(wire.view())) << c.name;

    Reader checked(wire.view());
    EXPECT_EQ(hex(checked.checked_table()), hex(wire.view().substr(4))) << c.name;
    EXPECT_TRUE(checked.ok() && checked.at_end()) << c.name;
  }
}

TEST(FieldValue, NamesAndTexts) {
  for (const Case& c : cases()) {
    EXPECT_EQ(c.value.type_octet(), c.wire[1]) << c.name;
    EXPECT_EQ(c.value.type_name(), c.type_name) << c.name;
    if (c.text == nullptr) continue;
    EXPECT_EQ(c.value.to_text(), c.text) << c.name;
  }
  EXPECT_EQ(FieldValue(std::string("\0\xff", 2)).to_text(), std::string("\0\xff", 2));
}

// Not-a-numbers keep their bits, signalling or not.
TEST(FieldValue, NanBitsSurvive) {
  for (const char* wire : {"'f'7fa00001", "'f'ffc12345", "'d'7ff4000000000001"}) {
    const std::string raw = table_with(bytes(wire));
    Reader in(raw);
    std::string out;
    Writer(out).table(in.table());
    EXPECT_EQ(hex(out), hex(raw));
  }
}

// RabbitMQ takes any octet but 0 for true.
TEST(FieldValue, AnyNonZeroOctetIsTrue) {
  const std::string raw = table_with(bytes("'t'02"));
  Reader in(raw);
  const Table table = in.table();
  ASSERT_TRUE(in.ok());
  EXPECT_TRUE(*table.find("k")->as_bool());
}

TEST(FieldValue, Accessors) {
  EXPECT_TRUE(FieldValue(std::int8_t{-3}).is_integer());
  EXPECT_EQ(FieldValue(std::int8_t{-3}).as_integer(), -3);
  EXPECT_EQ(FieldValue(std::uint32_t{4294967295}).as_integer(), 4294967295);
  EXPECT_EQ(capital_long(7).as_integer(), 7);
  EXPECT_FALSE(FieldValue(true).is_integer());
  EXPECT_FALSE(FieldValue(1.0).is_integer());
  EXPECT_FALSE(FieldValue(Timestamp{1}).is_integer());
  EXPECT_FALSE(FieldValue("5").is_integer());
  EXPECT_EQ(*FieldValue("s").as_string(), "s");
  EXPECT_EQ(FieldValue(ByteArray{"s"}).as_string(), nullptr);
  EXPECT_EQ(FieldValue(1).as_bool(), nullptr);
  EXPECT_EQ(FieldValue(1).as_table(), nullptr);
  EXPECT_EQ(FieldValue(1).as_array(), nullptr);
  EXPECT_EQ(FieldValue(Table{{"a", 1}}).as_table()->size(), 1u);
  EXPECT_EQ(FieldValue(Array{FieldValue(1), FieldValue(2)}).as_array()->size(), 2u);
  EXPECT_DEATH((void)FieldValue("5").as_integer(), "is_integer");
}

TEST(Table, RepeatedKeyKeepsItsPlaceAndTheLastOneCounts) {
  const std::string raw = bytes(
      "0000001c 01'a''I'00000001 01'b''I'00000002 01'a''I'00000003 "
      "01'b''I'00000004");
  Reader in(raw);
  Table table = in.table();
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.find("a")->as_integer(), 3);
  EXPECT_EQ(table.find("b")->as_integer(), 4);
  std::string out;
  Writer(out).table(table);
  EXPECT_EQ(hex(out), hex(raw));

  table.set("a", 9);
  EXPECT_EQ(table.entries()[0].second.as_integer(), 1);
  EXPECT_EQ(table.entries()[2].second.as_integer(), 9);
  table.erase("a");
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find("a"), nullptr);
  table.set("c", "new");
  EXPECT_EQ(table.entries().back().first, "c");
  EXPECT_EQ(table.find(""), nullptr);
}

TEST(Table, CopiesAndMoves) {
  Table a{{"k", Table{{"n", Array{FieldValue("deep")}}}}};
  Table b = a;
  EXPECT_TRUE(equivalent(a, b));
  b.set("k", 1);
  EXPECT_FALSE(equivalent(a, b));
  const Table c = std::move(a);
  EXPECT_EQ(c.find("k")->to_text(), "{n: [deep]}");
}

// Field report 15, and its kind.
TEST(Equivalent, Cases) {
  const struct {
    const char* name;
    FieldValue a;
    FieldValue b;
    bool same;
  } all[] = {
      {"int8 and int16", std::int8_t{10}, std::int16_t{10}, true},
      {"int8 and uint8", std::int8_t{10}, std::uint8_t{10}, true},
      {"int32 and int64", 10, std::int64_t{10}, true},
      {"uint32 and L", std::uint32_t{10}, capital_long(10), true},
      {"uint16 and int64", std::uint16_t{65535}, std::int64_t{65535}, true},
      {"negative", std::int8_t{-1}, std::int64_t{-1}, true},
      {"same bits, other numbers", std::int8_t{-1}, std::uint8_t{255}, false},
      {"same bits, wider", -1, std::uint32_t{4294967295}, false},
      {"10 and 11", 10, 11, false},
      {"number and its text", 10, "10", false},
      {"bool and 1", true, 1, false},
      {"bool and 0", false, std::int8_t{0}, false},
      {"bools", true, true, true},
      {"bools that differ", true, false, false},
      {"integer and double", 10, 10.0, false},
      {"float and double", 1.5f, 1.5, true},
      {"float and double that round apart", 0.1f, 0.1, false},
      {"NaN and NaN", std::numeric_limits<double>::quiet_NaN(),
       std::numeric_limits<float>::quiet_NaN(), true},
      {"NaN and 0", std::numeric_limits<double>::quiet_NaN(), 0.0, false},
      {"timestamp and integer", Timestamp{10}, 10, false},
      {"timestamps", Timestamp{10}, Timestamp{10}, true},
      {"decimals", Decimal{2, 314}, Decimal{2, 314}, true},
      {"decimals that differ in scale", Decimal{2, 314}, Decimal{3, 314}, false},
      {"string and bytes", "abc", ByteArray{"abc"}, false},
      {"strings", "abc", "abc", true},
      {"strings by case", "abc", "Abc", false},
      {"voids", Void{}, Void{}, true},
      {"void and false", Void{}, false, false},
      {"void and empty string", Void{}, "", false},
      {"arrays by width", Array{FieldValue(1), FieldValue(2)},
       Array{FieldValue(std::int64_t{1}), FieldValue(std::uint8_t{2})}, true},
      {"arrays by order", Array{FieldValue(1), FieldValue(2)}, Array{FieldValue(2), FieldValue(1)},
       false},
      {"arrays by length", Array{FieldValue(1)}, Array{FieldValue(1), FieldValue(1)}, false},
      {"tables by order", Table{{"a", 1}, {"b", 2}}, Table{{"b", std::int64_t{2}}, {"a", 1}}, true},
      {"tables nested", Table{{"a", Table{{"x", 1}, {"y", 2}}}},
       Table{{"a", Table{{"y", 2}, {"x", std::int8_t{1}}}}}, true},
      {"tables by value", Table{{"a", 1}}, Table{{"a", 2}}, false},
      {"tables by key", Table{{"a", 1}}, Table{{"b", 1}}, false},
      {"extra key", Table{{"a", 1}}, Table{{"a", 1}, {"b", 2}}, false},
      {"void is not absent", Table{{"x-foo", Void{}}}, Table{}, false},
      {"void under another key", Table{{"x-foo", Void{}}}, Table{{"x-bar", "a"}}, false},
      {"repeated key, last counts", Table{{"a", 1}, {"a", 2}}, Table{{"a", 2}}, true},
      {"repeated key, first does not", Table{{"a", 1}, {"a", 2}}, Table{{"a", 1}}, false},
      {"repeats make no keys", Table{{"a", 1}, {"a", 1}}, Table{{"a", 1}, {"b", 1}}, false},
      {"array and table", Array{}, Table{}, false},
  };
  for (const auto& c : all) {
    EXPECT_EQ(equivalent(c.a, c.b), c.same) << c.name;
    EXPECT_EQ(equivalent(c.b, c.a), c.same) << c.name << ", turned round";
  }
  for (const Case& c : cases()) EXPECT_TRUE(equivalent(c.value, c.value)) << c.name;
}

TEST(Equivalent, TheLastOfManyRepeatsCounts) {
  Table repeats;
  for (int i = 0; i < 1000; ++i) repeats.append(i % 2 == 0 ? "even" : "odd", i);
  EXPECT_TRUE(equivalent(repeats, Table{{"odd", 999}, {"even", 998}}));
  EXPECT_FALSE(equivalent(repeats, Table{{"odd", 997}, {"even", 998}}));
}

}  // namespace
}  // namespace stoat::wire
