#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoat::broker {

// The expiration property: a time to live in milliseconds as decimal digits, at most ten years.
// nullopt when it is anything else.
std::optional<std::uint64_t> parse_expiration(std::string_view text);

}  // namespace stoat::broker
