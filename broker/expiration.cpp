#include "broker/expiration.hpp"

#include <charconv>

#include "broker/queue_arguments.hpp"

namespace stoat::broker {

std::optional<std::uint64_t> parse_expiration(std::string_view text) {
  std::uint64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (ms > static_cast<std::uint64_t>(kMaxExpiryMs)) return std::nullopt;
  return ms;
}

}  // namespace stoat::broker
