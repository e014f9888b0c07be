#include "stoat/client/uri.hpp"

#include <gtest/gtest.h>

#include "stoat/client/error.hpp"

namespace stoat::client {
namespace {

Uri make(std::string host, std::uint16_t port, std::string user, std::string password,
         std::string vhost) {
  Uri uri;
  uri.host = std::move(host);
  uri.port = port;
  uri.user = std::move(user);
  uri.password = std::move(password);
  uri.vhost = std::move(vhost);
  return uri;
}

struct GoodCase {
  const char* text;
  Uri expected;
};

TEST(Uri, TakesWhatTheSchemeAllows) {
  const GoodCase cases[] = {
      // The examples of the scheme's own appendix; what is absent keeps the default.
      {"amqp://user:pass@host:10000/vhost", make("host", 10000, "user", "pass", "vhost")},
      {"amqp://user%61:%61pass@ho%61st:10000/v%2fhost",
       make("hoast", 10000, "usera", "apass", "v/host")},
      {"amqp://", make("localhost", 5672, "guest", "guest", "/")},
      {"amqp://:@/", make("localhost", 5672, "", "", "")},
      {"amqp://user@", make("localhost", 5672, "user", "guest", "/")},
      {"amqp://user:pass@", make("localhost", 5672, "user", "pass", "/")},
      {"amqp://host", make("host", 5672, "guest", "guest", "/")},
      {"amqp://:10000", make("localhost", 10000, "guest", "guest", "/")},
      {"amqp:///vhost", make("localhost", 5672, "guest", "guest", "vhost")},
      {"amqp://host/", make("host", 5672, "guest", "guest", "")},
      {"amqp://host/%2f", make("host", 5672, "guest", "guest", "/")},
      {"amqp://[::1]", make("::1", 5672, "guest", "guest", "/")},
      // Beyond those.
      {"amqp://[fe80::1%25eth0]:1/", make("fe80::1%eth0", 1, "guest", "guest", "")},
      {"amqp://[::ffff:127.0.0.1]:65535", make("::ffff:127.0.0.1", 65535, "guest", "guest", "/")},
      {"AMQP://Host", make("Host", 5672, "guest", "guest", "/")},
      {"amqp://host:", make("host", 5672, "guest", "guest", "/")},
      {"amqp://u:p:q@host", make("host", 5672, "u", "p:q", "/")},
      {"amqp://u%40x:p%2F%3A@host", make("host", 5672, "u@x", "p/:", "/")},
      {"amqp://host/a:b@c", make("host", 5672, "guest", "guest", "a:b@c")},
      {"amqp://host/sch%C3%B6n", make("host", 5672, "guest", "guest", "sch\xC3\xB6n")},
  };
  for (const GoodCase& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(Uri::parse(c.text), c.expected);
  }
}

TEST(Uri, RefusesTheRestAndNamesThePart) {
  struct BadCase {
    std::string text;
    const char* named;
  };
  const BadCase cases[] = {
      {"", "amqp://"},
      {"localhost", "amqp://"},
      {"http://localhost", "amqp://"},
      {"amqp:/localhost", "amqp://"},
      {"amqps://localhost", "amqps"},
      {"amqp://host:0", "port"},
      {"amqp://host:65536", "port"},
      {"amqp://host:5672x", "port"},
      {"amqp://host:-1", "port"},
      {"amqp://host: 5672", "port"},
      {"amqp://host:000001", "port"},
      {"amqp://ho st", "host"},
      {"amqp://ho%zz", "host"},
      {"amqp://host%4", "host"},
      {"amqp://host%", "host"},
      {"amqp://::1", "port"},
      {"amqp://[::1", "host"},
      {"amqp://[::1]5672", "host"},
      {"amqp://[::g]", "IPv6"},
      {"amqp://[]", "IPv6"},
      {"amqp://[::1%eth0]", "zone"},
      {"amqp://[::1%25]", "zone"},
      {"amqp://u@v@host", "user"},
      {"amqp://u:p@q@host", "password"},
      {"amqp://u%00:p@host", "user"},
      {"amqp://u:p%00@host", "password"},
      {"amqp://u%ff@host", "user"},
      {"amqp://host/a/b", "vhost"},
      {"amqp://host/a%2", "vhost"},
      {"amqp://host/a b", "vhost"},
      {"amqp://host/%80", "vhost"},
      {"amqp://host/" + std::string(256, 'v'), "vhost"},
      {"amqp://host?heartbeat=5", "query"},
      {"amqp://host/v?x", "query"},
      {"amqp://host#top", "fragment"},
      {"amqp://" + std::string(5000, 'h'), "longer"},
  };
  for (const BadCase& c : cases) {
    SCOPED_TRACE(c.text.substr(0, 60));
    try {
      Uri::parse(c.text);
      ADD_FAILURE() << "was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(c.named), std::string::npos) << error.what();
    }
  }
}

TEST(Uri, NeverShowsThePassword) {
  for (const char* text : {"amqp://u:secr et@host", "amqp://u:secret%@host", "amqp://u:secret@h:x",
                           "amqp://u:secret@h/a/b", "x://u:secret@h"}) {
    try {
      Uri::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("secr"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace stoat::client
