#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoat::client {

// Where a broker is and who asks, as an amqp URI says it:
//
//   amqp://user:pass@host:5672/vhost      amqp://[::1]      amqp://host/%2F
//
// What the URI leaves out keeps the default below. Each part is percent-decoded. As the URI
// scheme's own document has it, "amqp://host" leaves the vhost out, so it is "/", while
// "amqp://host/" names the vhost with the empty name.
struct Uri {
  Uri() = default;

  std::string host = "localhost";  // an IPv6 address without its brackets
  std::uint16_t port = 5672;
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";

  // Strict: anything that is not wholly an amqp URI throws Error(invalid_argument) that names the
  // part at fault and never shows the password. Query options are refused, as is amqps.
  static Uri parse(std::string_view text);

  friend bool operator==(const Uri&, const Uri&) = default;
};

}  // namespace stoat::client
