#pragma once

#include <optional>
#include <string>
#include <string_view>

// What the admin port says to plain HTTP, and who may open a WebSocket: values in and out.

namespace stoat::broker::admin {

inline constexpr std::string_view kWebSocketPath = "/ws";
inline constexpr std::string_view kLivePath = "/health/live";
inline constexpr std::string_view kReadyPath = "/health/ready";

struct HttpQuestion {
  std::string method;
  std::string path;                 // without the query
  bool upgrade = false;             // asks for a WebSocket
  std::optional<std::string> host;  // these three: header fields
  std::optional<std::string> origin;
  std::optional<std::string> authorization;
};

struct HttpReply {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow = {};          // with 405
  bool ask_for_password = false;   // with 401: WWW-Authenticate
  bool ask_for_websocket = false;  // with 426: Upgrade
};

// To a request that opens no WebSocket. The health paths answer ok: whoever could not say so has
// not come here.
HttpReply page_for(const HttpQuestion& question);

// nullopt: a WebSocket may be opened, as far as path and origin go. A browser names the page that
// asks in Origin; one from another host and port than it asks is refused, so that no page elsewhere
// can use the passwords that a browser remembers.
std::optional<HttpReply> refuse_upgrade(const HttpQuestion& question);

struct Credentials {
  std::string user;
  std::string password;
};
// HTTP Basic (RFC 7617); nullopt when the field's value is anything else.
std::optional<Credentials> parse_basic(std::string_view authorization);

HttpReply login_refused(std::string_view why);
HttpReply bad_request(std::string_view why);
HttpReply not_ready(std::string_view why);

}  // namespace stoat::broker::admin
