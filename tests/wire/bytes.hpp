#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stoat::wire::test {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Bytes as a test writes them down: hex digits in pairs, 'quoted text' as it is, blanks anywhere.
inline std::string bytes(std::string_view notation) {
  std::string out;
  for (std::size_t i = 0; i < notation.size(); ++i) {
    if (notation[i] == ' ') continue;
    if (notation[i] == '\'') {
      const std::size_t end = notation.find('\'', i + 1);
      if (end == notation.npos) throw std::invalid_argument("unclosed quote");
      out += notation.substr(i + 1, end - i - 1);
      i = end;
      continue;
    }
    const int high = hex_digit(notation[i]);
    const int low = ++i < notation.size() ? hex_digit(notation[i]) : -1;
    if (high < 0 || low < 0) throw std::invalid_argument("not a pair of hex digits");
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

// The other way, so that a failure can be read.
inline std::string hex(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    char pair[4];
    std::snprintf(pair, sizeof pair, "%02x ", static_cast<unsigned char>(c));
    out += pair;
  }
  return out;
}

// A copy that ends where its allocation ends: AddressSanitizer sees a read past it.
class ExactCopy {
 public:
  explicit ExactCopy(std::string_view raw) : raw_(raw.begin(), raw.end()) {}
  std::string_view view() const { return {raw_.data(), raw_.size()}; }

 private:
  std::vector<char> raw_;
};

}  // namespace stoat::wire::test
