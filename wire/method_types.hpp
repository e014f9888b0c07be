#pragma once

#include <string>
#include <string_view>

#include "wire/reply_code.hpp"

// The field types that methods are made of, beside bool (a bit; neighbours share an octet),
// std::uint8_t … std::uint64_t and Table.

namespace stoat::wire {

// A view of up to 255 bytes. In a decoded method it points into the payload it came from.
struct ShortString {
  std::string_view text;
  constexpr ShortString() = default;
  constexpr ShortString(std::string_view t) : text(t) {}        // NOLINT: reads as a string
  ShortString(const std::string& t) : text(t) {}                // NOLINT
  constexpr ShortString(const char* t) : text(t) {}             // NOLINT
  constexpr operator std::string_view() const { return text; }  // NOLINT
  std::string str() const { return std::string(text); }
  friend bool operator==(const ShortString&, const ShortString&) = default;
};

// A view of up to 2^32-1 bytes, not necessarily text.
struct LongString {
  std::string_view text;
  constexpr LongString() = default;
  constexpr LongString(std::string_view t) : text(t) {}         // NOLINT
  LongString(const std::string& t) : text(t) {}                 // NOLINT
  constexpr LongString(const char* t) : text(t) {}              // NOLINT
  constexpr operator std::string_view() const { return text; }  // NOLINT
  std::string str() const { return std::string(text); }
  friend bool operator==(const LongString&, const LongString&) = default;
};

}  // namespace stoat::wire
