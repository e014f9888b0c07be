#include "wire/reply_code.hpp"

#include "wire/utf8.hpp"

namespace stoat::wire {
namespace {

constexpr std::size_t kMaxReplyTextBytes = 255;

// Appends text as well-formed UTF-8 while whole characters fit. Explanations quote what a peer
// sent, which need not be UTF-8; a short string must be.
void append_characters(std::string& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t size = utf8_character_size(text);
    const bool good = size != 0;
    if (!good) size = 1;
    if (out.size() + size > kMaxReplyTextBytes) return;
    if (good) {
      out.append(text.substr(0, size));
    } else {
      out.push_back('?');
    }
    text.remove_prefix(size);
  }
}

std::string compose(std::string_view name, std::string_view explanation) {
  std::string text(name);
  text += " - ";
  append_characters(text, explanation);
  return text;
}

}  // namespace

std::string_view name_of(ChannelErrorCode code) {
  switch (code) {
    case ChannelErrorCode::content_too_large:
      return "CONTENT_TOO_LARGE";
    case ChannelErrorCode::no_consumers:
      return "NO_CONSUMERS";
    case ChannelErrorCode::access_refused:
      return "ACCESS_REFUSED";
    case ChannelErrorCode::not_found:
      return "NOT_FOUND";
    case ChannelErrorCode::resource_locked:
      return "RESOURCE_LOCKED";
    case ChannelErrorCode::precondition_failed:
      return "PRECONDITION_FAILED";
  }
  return "CHANNEL_CLOSED";  // only a number cast to the enum gets here
}

std::string_view name_of(ConnectionErrorCode code) {
  switch (code) {
    case ConnectionErrorCode::connection_forced:
      return "CONNECTION_FORCED";
    case ConnectionErrorCode::invalid_path:
      return "INVALID_PATH";
    case ConnectionErrorCode::access_refused:
      return "ACCESS_REFUSED";
    case ConnectionErrorCode::frame_error:
      return "FRAME_ERROR";
    case ConnectionErrorCode::syntax_error:
      return "SYNTAX_ERROR";
    case ConnectionErrorCode::command_invalid:
      return "COMMAND_INVALID";
    case ConnectionErrorCode::channel_error:
      return "CHANNEL_ERROR";
    case ConnectionErrorCode::unexpected_frame:
      return "UNEXPECTED_FRAME";
    case ConnectionErrorCode::resource_error:
      return "RESOURCE_ERROR";
    case ConnectionErrorCode::not_allowed:
      return "NOT_ALLOWED";
    case ConnectionErrorCode::not_implemented:
      return "NOT_IMPLEMENTED";
    case ConnectionErrorCode::internal_error:
      return "INTERNAL_ERROR";
  }
  return "CONNECTION_CLOSED";  // only a number cast to the enum gets here
}

std::string reply_text(ChannelErrorCode code, std::string_view explanation) {
  return compose(name_of(code), explanation);
}

std::string reply_text(ConnectionErrorCode code, std::string_view explanation) {
  return compose(name_of(code), explanation);
}

}  // namespace stoat::wire
