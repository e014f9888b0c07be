// What the admin port answers to plain HTTP, and whom it lets open a WebSocket.

#include <gtest/gtest.h>

#include "broker/admin/http_pages.hpp"

namespace stoat::broker::admin {
namespace {

HttpQuestion question(std::string method, std::string path) {
  HttpQuestion q;
  q.method = std::move(method);
  q.path = std::move(path);
  return q;
}

TEST(AdminHttp, AnswersPaths) {
  const struct {
    const char* method;
    const char* path;
    unsigned status;
    const char* says;
  } cases[] = {
      {"GET", "/", 200, "/ws"},
      {"HEAD", "/", 200, "/ws"},
      {"GET", "/health/live", 200, "ok"},
      {"GET", "/health/ready", 200, "ok"},
      {"GET", "/ws", 426, "ws://HOST:PORT/ws"},
      {"GET", "/api/queues", 404, "admin port"},
      {"GET", "/ws/", 404, "admin port"},
      {"GET", "", 404, "admin port"},
      {"POST", "/", 405, "Only GET"},
      {"POST", "/ws", 405, "Only GET"},
      {"POST", "/nowhere", 404, "admin port"},
  };
  for (const auto& c : cases) {
    const HttpReply reply = page_for(question(c.method, c.path));
    EXPECT_EQ(reply.status, c.status) << c.method << ' ' << c.path;
    EXPECT_NE(reply.body.find(c.says), std::string::npos) << c.method << ' ' << c.path;
  }
  EXPECT_EQ(page_for(question("POST", "/")).allow, "GET, HEAD");
  EXPECT_TRUE(page_for(question("GET", "/ws")).ask_for_websocket);
}

TEST(AdminHttp, LetsInPagesOfItsOwn) {
  const struct {
    const char* name;
    std::optional<std::string> host;
    std::optional<std::string> origin;
    bool allowed;
  } cases[] = {
      {"no browser", "localhost:15672", std::nullopt, true},
      {"its own page", "localhost:15672", "http://localhost:15672", true},
      {"another case", "LocalHost:15672", "http://localhost:15672", true},
      {"behind TLS", "mq.example.org", "https://mq.example.org", true},
      {"port of the scheme", "mq.example.org:443", "https://mq.example.org", true},
      {"port of the scheme, in the origin", "mq.example.org", "http://mq.example.org:80", true},
      {"IPv6", "[::1]:15672", "http://[::1]:15672", true},
      {"another host", "localhost:15672", "http://evil.example", false},
      {"another port", "localhost:15672", "http://localhost:3000", false},
      {"another scheme's port", "localhost:443", "http://localhost", false},
      {"a longer name", "localhost:15672", "http://localhost:15672.evil.example", false},
      {"its name as user", "localhost:15672", "http://localhost:15672@evil.example", false},
      {"a file", "localhost:15672", "null", false},
      {"another scheme", "localhost:15672", "ftp://localhost:15672", false},
      {"empty", "localhost:15672", "", false},
      {"no host", std::nullopt, "http://localhost:15672", false},
  };
  for (const auto& c : cases) {
    HttpQuestion q = question("GET", "/ws");
    q.upgrade = true;
    q.host = c.host;
    q.origin = c.origin;
    const auto refused = refuse_upgrade(q);
    EXPECT_EQ(!refused.has_value(), c.allowed) << c.name;
    if (refused) {
      EXPECT_EQ(refused->status, 403u) << c.name;
    }
  }
  HttpQuestion elsewhere = question("GET", "/amqp");
  elsewhere.upgrade = true;
  ASSERT_TRUE(refuse_upgrade(elsewhere));
  EXPECT_EQ(refuse_upgrade(elsewhere)->status, 404u);
}

TEST(AdminHttp, ReadsBasicCredentials) {
  const struct {
    const char* field;
    const char* pair;  // nullptr: none
  } cases[] = {
      {"Basic Z3Vlc3Q6Z3Vlc3Q=", "guest|guest"},
      {"basic Z3Vlc3Q6Z3Vlc3Q=", "guest|guest"},
      {"Basic   Z3Vlc3Q6Z3Vlc3Q=", "guest|guest"},
      {"Basic YTpiOmM=", "a|b:c"},
      {"Basic Og==", "|"},
      {"Basic dXNlcg==", nullptr},         // no colon
      {"Basic Z3Vlc3Q6Z3Vlc3Q", nullptr},  // no padding
      {"Basic /zo=", nullptr},             // not UTF-8
      {"Basic ", nullptr},
      {"Basic", nullptr},
      {"Bearer Z3Vlc3Q6Z3Vlc3Q=", nullptr},
      {"", nullptr},
  };
  for (const auto& c : cases) {
    const auto credentials = parse_basic(c.field);
    ASSERT_EQ(credentials.has_value(), c.pair != nullptr) << c.field;
    if (credentials) {
      EXPECT_EQ(credentials->user + "|" + credentials->password, c.pair);
    }
  }
}

}  // namespace
}  // namespace stoat::broker::admin
