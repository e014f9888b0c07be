#include "stoat/client/uri.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "stoat/client/error.hpp"
#include "wire/utf8.hpp"

namespace stoat::client {

namespace {

constexpr std::size_t kMaxUriBytes = 4096;
constexpr std::size_t kMaxVhostBytes = 255;  // a short string on the wire

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorKind::invalid_argument, "bad amqp URI: " + why);
}

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// RFC 3986: what may stand for itself in user, password, host and vhost.
bool is_unreserved_or_sub_delim(char c) {
  return is_alpha(c) || is_digit(c) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// also_allowed: characters of the part's own grammar beside the common ones.
std::string decode(std::string_view text, std::string_view part, std::string_view also_allowed) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '%') {
      if (!is_unreserved_or_sub_delim(c) && also_allowed.find(c) == std::string_view::npos)
        fail("a character in the " + std::string(part) + " must be percent-encoded");
      out += c;
      continue;
    }
    const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) fail("% without two hexadecimal digits in the " + std::string(part));
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  // PLAIN separates user and password by NUL; short strings on the wire are UTF-8.
  if (out.find('\0') != std::string::npos) fail("NUL in the " + std::string(part));
  if (!wire::valid_utf8(out)) fail("the " + std::string(part) + " is not UTF-8");
  return out;
}

std::string parse_ipv6(std::string_view text) {
  // RFC 6874: a zone follows as %25zone.
  const std::size_t percent = text.find('%');
  std::string address(text.substr(0, percent));
  in6_addr parsed;
  if (::inet_pton(AF_INET6, address.c_str(), &parsed) != 1) fail("bad IPv6 address in the host");
  if (percent == std::string_view::npos) return address;
  if (text.substr(percent, 3) != "%25" || text.size() == percent + 3)
    fail("bad IPv6 zone in the host");
  return address + '%' + decode(text.substr(percent + 3), "host", "");
}

std::uint16_t parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0 || text.size() > 5)
    fail("the port must be a number from 1 to 65535");
  return port;
}

void parse_user_info(std::string_view text, Uri& uri) {
  const std::size_t colon = text.find(':');
  uri.user = decode(text.substr(0, colon), "user", "");
  if (colon != std::string_view::npos)
    uri.password = decode(text.substr(colon + 1), "password", ":");
}

void parse_host_and_port(std::string_view text, Uri& uri) {
  std::string_view after_host;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) fail("[ without ] in the host");
    uri.host = parse_ipv6(text.substr(1, bracket - 1));
    after_host = text.substr(bracket + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    if (colon > 0) uri.host = decode(text.substr(0, colon), "host", "");
    after_host = text.substr(colon);
  }
  if (after_host.empty()) return;
  if (after_host[0] != ':') fail("only a port may follow the host's ]");
  if (after_host.size() > 1) uri.port = parse_port(after_host.substr(1));
}

std::string parse_vhost(std::string_view path) {
  if (path.find('/') != std::string_view::npos) fail("a / in the vhost must be written as %2F");
  std::string vhost = decode(path, "vhost", ":@");
  if (vhost.size() > kMaxVhostBytes) fail("the vhost is longer than 255 bytes");
  return vhost;
}

}  // namespace

Uri Uri::parse(std::string_view text) {
  if (text.size() > kMaxUriBytes) fail("longer than 4096 bytes");
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) fail("it must begin with amqp://");
  std::string scheme(text.substr(0, scheme_end));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return is_alpha(c) ? static_cast<char>(c | 0x20) : c; });
  if (scheme == "amqps") fail("amqps is not supported, only amqp");
  if (scheme != "amqp") fail("it must begin with amqp://");

  std::string_view rest = text.substr(scheme_end + 3);
  if (rest.find('#') != std::string_view::npos) fail("a fragment (#) has no meaning here");
  if (rest.find('?') != std::string_view::npos) fail("query options (?) are not supported");

  Uri uri;
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    uri.vhost = parse_vhost(rest.substr(slash + 1));
    rest = rest.substr(0, slash);
  }
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    parse_user_info(rest.substr(0, at), uri);
    rest = rest.substr(at + 1);
  }
  parse_host_and_port(rest, uri);
  return uri;
}

}  // namespace stoat::client
