#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

// Reply codes of AMQP 0-9-1 (specification 1.2.x "Constants"), split by scope into two enums so
// that code cannot close the wrong thing: a ChannelError closes its channel, a ConnectionError the
// connection. Both may be thrown to leave a handler; they are rare by nature.

namespace stoat::wire {

// Which method an error answers; {0, 0} where there is none.
struct MethodId {
  std::uint16_t class_id = 0;
  std::uint16_t method_id = 0;
  friend constexpr bool operator==(const MethodId&, const MethodId&) = default;
  constexpr std::uint32_t packed() const { return std::uint32_t{class_id} << 16 | method_id; }
};

enum class ChannelErrorCode : std::uint16_t {
  content_too_large = 311,
  no_consumers = 313,
  access_refused = 403,
  not_found = 404,
  resource_locked = 405,
  precondition_failed = 406,
};

enum class ConnectionErrorCode : std::uint16_t {
  connection_forced = 320,
  invalid_path = 402,
  access_refused = 403,  // on channel 0: a refused login
  frame_error = 501,
  syntax_error = 502,
  command_invalid = 503,
  channel_error = 504,
  unexpected_frame = 505,
  resource_error = 506,
  not_allowed = 530,
  not_implemented = 540,
  internal_error = 541,
};

inline constexpr std::uint16_t kReplySuccess = 200;
inline constexpr std::uint16_t kNoRoute = 312;  // only inside basic.return

// "NOT_FOUND", "FRAME_ERROR"…: the name that begins every reply text.
std::string_view name_of(ChannelErrorCode code);
std::string_view name_of(ConnectionErrorCode code);

// "NAME - explanation" cut to the 255 bytes of a short string, on a UTF-8 character boundary.
std::string reply_text(ChannelErrorCode code, std::string_view explanation);
std::string reply_text(ConnectionErrorCode code, std::string_view explanation);

// text is the whole reply text, already cut.
struct ChannelError : std::exception {
  ChannelError(ChannelErrorCode c, std::string_view explanation, MethodId m = {})
      : code(c), text(reply_text(c, explanation)), method(m) {}
  const char* what() const noexcept override { return text.c_str(); }
  ChannelErrorCode code;
  std::string text;
  MethodId method;
};

struct ConnectionError : std::exception {
  ConnectionError(ConnectionErrorCode c, std::string_view explanation, MethodId m = {})
      : code(c), text(reply_text(c, explanation)), method(m) {}
  const char* what() const noexcept override { return text.c_str(); }
  ConnectionErrorCode code;
  std::string text;
  MethodId method;
};

}  // namespace stoat::wire
