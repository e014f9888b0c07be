#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoat::broker {

// prefix + 22 characters of URL-safe base64 from 128 random bits: names of queues and consumer tags
// that the server chooses.
inline std::string generated_name(std::string_view prefix, std::uint64_t a, std::uint64_t b) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string name(prefix);
  for (std::uint64_t word : {a, b}) {
    for (int i = 0; i < 11; ++i) {
      name.push_back(kDigits[word & 63]);
      word >>= 6;
    }
  }
  return name;
}

}  // namespace stoat::broker
