#include "wire/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace stoat::wire {
namespace {

// Table 3-7 of the Unicode standard: the lead byte fixes the length and the range of the second
// byte; that range is what excludes overlong forms, surrogates and everything above U+10FFFF.
struct Lead {
  std::size_t size;
  unsigned char second_low;
  unsigned char second_high;
};

constexpr Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

std::size_t utf8_character_size(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const Lead lead = lead_of(byte(0));
  if (lead.size <= 1) return lead.size;
  if (text.size() < lead.size) return 0;
  if (byte(1) < lead.second_low || byte(1) > lead.second_high) return 0;
  for (std::size_t at = 2; at < lead.size; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  return lead.size;
}

bool valid_utf8(std::string_view text) {
  while (!text.empty()) {
    // Names are mostly ASCII: eight bytes at a time.
    while (text.size() >= sizeof(std::uint64_t)) {
      std::uint64_t chunk;
      std::memcpy(&chunk, text.data(), sizeof chunk);
      if (chunk & 0x8080808080808080u) break;
      text.remove_prefix(sizeof chunk);
    }
    if (text.empty()) break;
    const std::size_t size = utf8_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace stoat::wire
