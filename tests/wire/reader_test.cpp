#include "wire/reader.hpp"

#include <gtest/gtest.h>

#include "tests/wire/allocation_probe.hpp"
#include "tests/wire/bytes.hpp"
#include "wire/writer.hpp"

namespace stoat::wire {
namespace {

using test::bytes;
using test::ExactCopy;
using test::hex;

TEST(Reader, Elementary) {
  const std::string raw = bytes("01 0203 04050607 08090a0b0c0d0e0f 02'ab' 00000003'cde' ff");
  Reader in(raw);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u32(), 0x04050607u);
  EXPECT_EQ(in.u64(), 0x08090a0b0c0d0e0fu);
  EXPECT_EQ(in.short_string(), "ab");
  EXPECT_EQ(in.long_string(), "cde");
  EXPECT_EQ(in.remaining(), 1u);
  EXPECT_EQ(in.rest(), "\xff");
  EXPECT_FALSE(in.at_end());
  EXPECT_EQ(in.bytes(1), "\xff");
  EXPECT_TRUE(in.at_end() && in.ok());
  EXPECT_EQ(in.bytes(0), "");
  EXPECT_TRUE(in.ok());
}

TEST(Reader, ShortReadsFailAndStayFailed) {
  const auto attempts = {
      +[](Reader& in) { (void)in.u16(); },          +[](Reader& in) { (void)in.u32(); },
      +[](Reader& in) { (void)in.u64(); },          +[](Reader& in) { (void)in.bytes(2); },
      +[](Reader& in) { (void)in.short_string(); }, +[](Reader& in) { (void)in.long_string(); },
      +[](Reader& in) { (void)in.table(); },        +[](Reader& in) { (void)in.checked_table(); },
  };
  for (const auto attempt : attempts) {
    const ExactCopy raw("\x07");
    Reader in(raw.view());
    attempt(in);
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.u8(), 0);
    EXPECT_EQ(in.short_string(), "");
    EXPECT_EQ(in.rest(), "");
    EXPECT_TRUE(in.table().empty());
    EXPECT_FALSE(in.ok());
  }
}

TEST(Reader, Fail) {
  Reader in("abc");
  in.fail();
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(in.at_end());
}

struct BadTable {
  const char* name;
  const char* notation;  // with the table's length prefix
};

const BadTable kBadTables[] = {
    {"no length", ""},
    {"cut length", "0000"},
    {"length of nothing", "00000001"},
    {"length of 2 GiB", "7fffffff 01'k''t'01"},
    {"length of 4 GiB", "ffffffff 01'k''t'01"},
    {"length one more than there is", "00000005 01'k''t'01"},
    {"length one less than an entry", "00000003 01'k''t'01"},
    {"key alone", "00000002 01'k'"},
    {"key without its text", "00000001 05"},
    {"key longer than the table", "00000004 ff'k''t'01"},
    {"type without value", "00000003 01'k''t'"},
    {"type 0", "00000003 01'k'00"},
    {"type z", "00000004 01'k''z'01"},
    {"type C of the specification", "00000004 01'k''C'01"},
    {"type U of the specification", "00000005 01'k''U'0001"},
    {"short s as a string", "00000005 01'k''s'01"},
    {"int32 cut", "00000006 01'k''I'000000"},
    {"int64 cut", "0000000a 01'k''l'00000000000000"},
    {"capital int64 cut", "0000000a 01'k''L'00000000000000"},
    {"double cut", "0000000a 01'k''d'00000000000000"},
    {"decimal cut", "00000007 01'k''D'00000000"},
    {"string longer than the table", "00000008 01'k''S'00000002'a'"},
    {"string of 4 GiB", "00000008 01'k''S'ffffffff'a'"},
    {"bytes of 4 GiB", "00000008 01'k''x'ffffffff'a'"},
    {"array longer than the table", "00000008 01'k''A'00000002'V'"},
    {"array of 4 GiB", "00000008 01'k''A'ffffffff'V'"},
    {"array that cuts its value", "00000009 01'k''A'00000001'I'00"},
    {"array of an unknown type", "00000008 01'k''A'00000001'?'"},
    {"nested table longer than its parent", "00000009 01'k''F'00000003 00'V'"},
    {"nested table of 4 GiB", "00000009 01'k''F'ffffffff 00'V'"},
    {"nested table that cuts its value", "0000000a 01'k''F'00000002 00't'01"},
    {"good, then bad", "00000008 01'k''t'01 01'j''t'"},
    {"bad within an array within a table", "00000012 01'k''F'0000000b 01'j''A'00000004'S'000000"},
};

// A lying length is found out before anything of its size is asked for.
TEST(Reader, MalformedTablesFailAndAllocateNothingAnnounced) {
  for (const BadTable& c : kBadTables) {
    const ExactCopy raw(bytes(c.notation));
    test::AllocationProbe probe;
    Reader parse(raw.view());
    EXPECT_TRUE(parse.table().empty()) << c.name;
    EXPECT_FALSE(parse.ok()) << c.name;
    Reader check(raw.view());
    EXPECT_EQ(check.checked_table(), "") << c.name;
    EXPECT_FALSE(check.ok()) << c.name;
    EXPECT_LT(probe.total_bytes(), 4096u) << c.name;
  }
}

Table of_every_type() {
  FieldValue capital = std::int64_t{5};
  capital.long_as_capital = true;
  const Array array{FieldValue(1), FieldValue("two"), FieldValue(Table{{"three", 3.0}})};
  return {{"V", Void{}},
          {"t", true},
          {"b", std::int8_t{1}},
          {"B", std::uint8_t{2}},
          {"s", std::int16_t{3}},
          {"u", std::uint16_t{4}},
          {"I", 5},
          {"i", std::uint32_t{6}},
          {"l", std::int64_t{7}},
          {"L", capital},
          {"f", 8.5f},
          {"d", 9.5},
          {"D", Decimal{1, 10}},
          {"S", "eleven"},
          {"x", ByteArray{"twelve"}},
          {"T", Timestamp{13}},
          {"A", array},
          {"F", Table{{"nested", array}}}};
}

TEST(Reader, EveryTruncationOfATableFails) {
  std::string whole;
  Writer(whole).table(of_every_type());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExactCopy raw(whole.substr(0, size));
    Reader parse(raw.view());
    (void)parse.table();
    ASSERT_FALSE(parse.ok()) << size;
  }
  // The same with a length prefix that fits: only a cut between two entries is well-formed, and
  // both ways to read a table have to agree on that.
  int well_formed = 0;
  for (std::size_t size = 4; size <= whole.size(); ++size) {
    std::string cut = whole.substr(0, size);
    store_big(cut.data(), static_cast<std::uint32_t>(size - 4));
    const ExactCopy raw(cut);
    Reader parse(raw.view());
    const Table table = parse.table();
    Reader check(raw.view());
    (void)check.checked_table();
    ASSERT_EQ(parse.ok(), check.ok()) << size;
    if (!parse.ok()) continue;
    ++well_formed;
    std::string out;
    Writer(out).table(table);
    ASSERT_EQ(hex(out), hex(cut));
  }
  EXPECT_EQ(well_formed, static_cast<int>(of_every_type().size()) + 1);
}

// count tables or arrays, each within the one before.
std::string nested(std::size_t count, bool arrays) {
  const std::string_view open = arrays ? "A" : std::string_view("\x01kF", 3);
  std::string inner;
  for (std::size_t level = 1; level < count; ++level) {
    std::string outer(level + 1 < count || !arrays ? open : std::string_view("\x01kA", 3));
    Writer(outer).long_string(inner);
    inner = std::move(outer);
  }
  std::string out;
  Writer(out).long_string(inner);
  return out;
}

TEST(Reader, DepthIsBounded) {
  for (const bool arrays : {false, true}) {
    for (const auto& [depth, good] :
         {std::pair{1, true}, {2, true}, {kMaxTableDepth, true}, {kMaxTableDepth + 1, false}}) {
      const ExactCopy raw(nested(static_cast<std::size_t>(depth), arrays));
      Reader parse(raw.view());
      const Table table = parse.table();
      EXPECT_EQ(parse.ok(), good) << depth << (arrays ? " arrays" : " tables");
      Reader check(raw.view());
      (void)check.checked_table();
      EXPECT_EQ(check.ok(), good) << depth << (arrays ? " arrays" : " tables");
      if (!good) continue;
      std::string out;
      Writer(out).table(table);
      EXPECT_EQ(hex(out), hex(raw.view()));
    }
  }
}

TEST(Reader, DepthBombFails) {
  for (const bool arrays : {false, true}) {
    // Built from the outside: every level announces all that follows.
    constexpr std::uint32_t kLevels = 20000;
    const std::string open = arrays ? bytes("'A'") : bytes("01'k''F'");
    const auto level_bytes = static_cast<std::uint32_t>(open.size() + 4);
    std::string raw;
    Writer w(raw);
    w.u32(kLevels * level_bytes + 2);
    if (arrays) w.bytes(bytes("01'k'"));
    for (std::uint32_t left = kLevels; left > 0; --left) {
      w.bytes(open);
      w.u32((left - 1) * level_bytes);
    }
    if (!arrays) w.bytes(bytes("00'V'"));
    test::AllocationProbe probe;
    Reader parse(raw);
    EXPECT_TRUE(parse.table().empty());
    EXPECT_FALSE(parse.ok());
    Reader check(raw);
    (void)check.checked_table();
    EXPECT_FALSE(check.ok());
    EXPECT_LT(probe.total_bytes(), 64u * 1024);
  }
}

TEST(Reader, TableLeavesWhatFollows) {
  const std::string raw = bytes("00000004 01'k''t'01 'rest'");
  Reader parse(raw);
  EXPECT_EQ(parse.table().size(), 1u);
  EXPECT_EQ(parse.rest(), "rest");
  Reader check(raw);
  EXPECT_EQ(hex(check.checked_table()), hex(bytes("01'k''t'01")));
  EXPECT_EQ(check.rest(), "rest");
}

TEST(Writer, RefusesAShortStringThatIsTooLong) {
  std::string out;
  Writer w(out);
  w.short_string(std::string(255, 'a'));
  EXPECT_EQ(out.size(), 256u);
  EXPECT_DEATH(w.short_string(std::string(256, 'a')), "255");
}

}  // namespace
}  // namespace stoat::wire
