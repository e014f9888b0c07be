#include "wire/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/wire/bytes.hpp"

namespace stoat::wire {
namespace {

using test::bytes;

struct Case {
  const char* name;
  const char* notation;
  bool valid;
};

const Case kCases[] = {
    {"empty", "", true},
    {"ascii", "'plain'", true},
    {"NUL", "00", true},
    {"DEL", "7f", true},
    {"lowest of two", "c280", true},
    {"highest of two", "dfbf", true},
    {"lowest of three", "e0a080", true},
    {"last before the surrogates", "ed9fbf", true},
    {"first after the surrogates", "ee8080", true},
    {"highest of three", "efbfbf", true},
    {"lowest of four", "f0908080", true},
    {"U+10FFFF", "f48fbfbf", true},
    {"byte order mark", "efbbbf", true},
    {"continuation alone", "80", false},
    {"highest continuation alone", "bf", false},
    {"overlong NUL", "c080", false},
    {"overlong slash of two", "c1af", false},
    {"overlong of three", "e09fbf", false},
    {"overlong of four", "f08fbfbf", false},
    {"first surrogate", "eda080", false},
    {"last surrogate", "edbfbf", false},
    {"surrogate pair", "eda080edb080", false},
    {"U+110000", "f4908080", false},
    {"lead f5", "f5808080", false},
    {"lead ff", "ff", false},
    {"five bytes", "f888808080", false},
    {"cut after one of two", "c2", false},
    {"cut after two of three", "e282", false},
    {"cut after three of four", "f09f98", false},
    {"second byte ascii", "c241", false},
    {"third byte ascii", "e28241", false},
    {"fourth byte ascii", "f09f9841", false},
    {"third byte a lead", "e282c2", false},
};

TEST(Utf8, Cases) {
  for (const Case& c : kCases) {
    EXPECT_EQ(valid_utf8(bytes(c.notation)), c.valid) << c.name;
  }
}

// The fast path steps over eight ASCII bytes at a time: the answer must not depend on where in
// them the character lies.
TEST(Utf8, CasesBetweenAscii) {
  for (const Case& c : kCases) {
    for (std::size_t before = 0; before < 20; ++before) {
      for (std::size_t after = 0; after < 10; ++after) {
        const test::ExactCopy text(std::string(before, 'a') + bytes(c.notation) +
                                   std::string(after, 'z'));
        ASSERT_EQ(valid_utf8(text.view()), c.valid) << c.name << " after " << before;
      }
    }
  }
}

std::string encode(std::uint32_t point) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 63))};
  if (point < 0x10000) {
    return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63))};
  }
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 63)), byte(0x80 | (point >> 6 & 63)),
          byte(0x80 | (point & 63))};
}

TEST(Utf8, EveryCodePoint) {
  for (std::uint32_t point = 0; point < 0x120000; ++point) {
    const bool valid = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    const std::string text = encode(point);
    ASSERT_EQ(valid_utf8(text), valid) << std::hex << point;
    ASSERT_EQ(utf8_character_size(text), valid ? text.size() : 0) << std::hex << point;
  }
}

TEST(Utf8, CharacterSizeLooksAtTheFrontOnly) {
  EXPECT_EQ(utf8_character_size(""), 0u);
  EXPECT_EQ(utf8_character_size(bytes("'a'ff")), 1u);
  EXPECT_EQ(utf8_character_size(bytes("e282acff")), 3u);
  EXPECT_EQ(utf8_character_size(bytes("ff'a'")), 0u);
}

}  // namespace
}  // namespace stoat::wire
