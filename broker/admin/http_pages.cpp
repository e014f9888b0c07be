#include "broker/admin/http_pages.hpp"

#include <algorithm>

#include "broker/base64.hpp"
#include "broker/version.hpp"
#include "wire/utf8.hpp"

namespace stoat::broker::admin {

namespace {

// ASCII; header fields hold nothing else that matters here.
std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::string without_port(std::string_view authority, std::string_view port) {
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return std::string(authority);
}

// Whether an Origin ("https://host:port") is the page's own host, as its Host names it.
bool same_host(std::string_view origin, std::string_view host) {
  const std::string from = lower(origin);
  const std::string to = lower(host);
  for (const auto& [scheme, port] :
       {std::pair<std::string_view, std::string_view>{"http://", ":80"}, {"https://", ":443"}}) {
    if (!from.starts_with(scheme)) continue;
    return without_port(std::string_view(from).substr(scheme.size()), port) ==
           without_port(to, port);
  }
  return false;
}

HttpReply text(unsigned status, std::string_view line) {
  HttpReply reply;
  reply.status = status;
  reply.body = std::string(line) + "\n";
  return reply;
}

HttpReply front_page() {
  HttpReply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.body =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>StoatMQ</title>\n"
      "<h1>StoatMQ " +
      std::string(version()) +
      "</h1>\n<p>This is the admin port of an AMQP 0-9-1 broker. It speaks JSON-RPC 2.0 over "
      "WebSocket at <code>/ws</code>; log in by HTTP Basic or with the method "
      "<code>login</code>.</p>\n</html>\n";
  return reply;
}

}  // namespace

HttpReply page_for(const HttpQuestion& question) {
  const bool health = question.path == kLivePath || question.path == kReadyPath;
  const bool known = health || question.path == "/" || question.path == kWebSocketPath;
  if (!known) {
    return text(404,
                "Nothing is here. This is StoatMQ's admin port: JSON-RPC 2.0 over WebSocket "
                "at /ws.");
  }
  if (question.method != "GET" && question.method != "HEAD") {
    HttpReply reply = text(405, "Only GET is answered here.");
    reply.allow = "GET, HEAD";
    return reply;
  }
  if (question.path == kWebSocketPath) {
    HttpReply reply = text(426, "This is a WebSocket endpoint: open it as ws://HOST:PORT/ws.");
    reply.ask_for_websocket = true;
    return reply;
  }
  return health ? text(200, "ok") : front_page();
}

std::optional<HttpReply> refuse_upgrade(const HttpQuestion& question) {
  if (question.path != kWebSocketPath) {
    return text(404, "There is no WebSocket here; it is at /ws.");
  }
  if (question.origin && !same_host(*question.origin, question.host.value_or(""))) {
    return text(403, "Pages from another origin may not use the admin endpoint.");
  }
  return std::nullopt;
}

std::optional<Credentials> parse_basic(std::string_view authorization) {
  constexpr std::string_view kScheme = "basic ";
  if (lower(authorization.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  const auto pair = base64_decode(authorization);
  if (!pair || !wire::valid_utf8(*pair)) return std::nullopt;
  const auto colon = pair->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{pair->substr(0, colon), pair->substr(colon + 1)};
}

HttpReply login_refused(std::string_view why) {
  HttpReply reply = text(401, "Login refused: " + std::string(why) + ".");
  reply.ask_for_password = true;
  return reply;
}

HttpReply bad_request(std::string_view why) {
  return text(400, "Bad request: " + std::string(why) + ".");
}

HttpReply not_ready(std::string_view why) {
  return text(503, "Not ready: " + std::string(why) + ".");
}

}  // namespace stoat::broker::admin
