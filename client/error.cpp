#include "stoat/client/error.hpp"

namespace stoat::client {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid argument";
    case ErrorKind::limit_reached:
      return "limit reached";
    case ErrorKind::network:
      return "network";
    case ErrorKind::access_refused:
      return "access refused";
    case ErrorKind::connection_closed:
      return "connection closed";
    case ErrorKind::channel_closed:
      return "channel closed";
    case ErrorKind::consumer_cancelled:
      return "consumer cancelled";
    case ErrorKind::closed:
      return "closed";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::protocol_violation:
      return "protocol violation";
  }
  return "unknown";
}

namespace {
std::string describe(std::string_view context, std::uint16_t code, std::string_view text) {
  std::string out(context);
  out += ": ";
  out += std::to_string(code);
  out += ' ';
  out += text;
  return out;
}
}  // namespace

Error::Error(ErrorKind kind, std::string_view context, std::uint16_t reply_code,
             std::string_view reply_text)
    : std::runtime_error(describe(context, reply_code, reply_text)),
      kind_(kind),
      reply_code_(reply_code),
      reply_text_(reply_text) {}

}  // namespace stoat::client
