#pragma once

#include <optional>
#include <string>
#include <string_view>

// Base64 (RFC 4648, section 4) as password hashes and bytes in JSON are written.

namespace stoat::broker {

std::string base64_encode(std::string_view bytes);

// nullopt unless text is whole groups of the alphabet, padded, with nothing between or around them.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace stoat::broker
