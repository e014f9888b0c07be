#include "client/handshake.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "wire/frame.hpp"

namespace stoat::client {

namespace {

constexpr std::uint16_t kMaxChannel = std::numeric_limits<std::uint16_t>::max();

bool contains_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t space = std::min(words.find(' '), words.size());
    if (words.substr(0, space) == word) return true;
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return false;
}

template <class T>
T lower_but_not_zero(T a, T b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

Table client_properties(const ConnectionOptions& options) {
  Table properties{
      {"product", "StoatMQ client"},
      {"version", STOAT_VERSION},
      {"platform", "C++20"},
      {"capabilities", Table{{"authentication_failure_close", true},
                             {"basic.nack", true},
                             {"connection.blocked", true},
                             {"consumer_cancel_notify", true},
                             {"exchange_exchange_bindings", true},
                             {"publisher_confirms", true}}},
  };
  if (!options.name.empty()) properties.set("connection_name", options.name);
  for (const auto& [key, value] : options.client_properties.entries()) properties.set(key, value);
  return properties;
}

std::string plain_response(const Uri& uri) {
  std::string response;
  response += '\0';
  response += uri.user;
  response += '\0';
  response += uri.password;
  return response;
}

std::optional<Error> check_start(const wire::connection::Start& start) {
  if (start.version_major != 0 || start.version_minor != 9)
    return Error(ErrorKind::protocol_violation,
                 "the broker speaks AMQP " + std::to_string(start.version_major) + '-' +
                     std::to_string(start.version_minor) + ", not 0-9-1");
  if (!contains_word(start.mechanisms, "PLAIN"))
    return Error(ErrorKind::access_refused, "the broker does not offer to log in with PLAIN");
  return std::nullopt;
}

Tuned negotiate(const wire::connection::Tune& offered, const ConnectionOptions& options) {
  Tuned tuned;
  tuned.channel_max = lower_but_not_zero(offered.channel_max, options.channel_max);
  if (tuned.channel_max == 0) tuned.channel_max = kMaxChannel;
  tuned.frame_max_bytes = lower_but_not_zero(
      offered.frame_max, std::max(options.frame_max_bytes, wire::kMinFrameMaxBytes));
  // A program that wants no heartbeat gets none; the broker's 0 leaves it to the client.
  const auto wanted = static_cast<std::uint16_t>(
      std::clamp<std::chrono::seconds::rep>(options.heartbeat.count(), 0, kMaxChannel));
  tuned.heartbeat_seconds = wanted == 0 ? wanted : lower_but_not_zero(offered.heartbeat, wanted);
  if (tuned.frame_max_bytes < wire::kMinFrameMaxBytes)
    tuned.error = Error(ErrorKind::protocol_violation,
                        "the broker's frame_max of " + std::to_string(offered.frame_max) +
                            " is below the protocol's minimum of 4096");
  return tuned;
}

}  // namespace stoat::client
