// The admin port over real sockets.

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "broker/admin/limits.hpp"
#include "broker/server.hpp"
#include "tests/broker/admin_socket.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wire_client.hpp"

namespace stoat::broker::admin {
namespace {

namespace json = boost::json;
using test::AdminSocket;

constexpr const char* kGuest = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n";
constexpr const char* kLogin =
    R"({"jsonrpc":"2.0","id":1,"method":"login","params":{"user":"guest","password":"guest"}})";
constexpr const char* kOverview = R"({"jsonrpc":"2.0","id":2,"method":"overview.get"})";

class AdminDoor : public testing::Test {
 protected:
  void start(const std::function<void(Config&)>& adjust = {}) {
    Config config;
    config.amqp_port = 0;
    config.admin_port = 0;
    config.workers = 2;
    config.log_level = "error";
    config.data_dir = folder_.path() / "data";
    config.disk_alarm_free_mb = 0;
    config.login_failure_delay_ms = 10;
    if (adjust) adjust(config);
    server_ = std::make_unique<Server>(config);
    server_->start();
  }
  std::uint16_t port() const { return server_->admin_port(); }

  // Queues q1000 … in vhost "/".
  void start_with_queues(std::size_t count) {
    json::array queues;
    for (std::size_t i = 0; i < count; ++i) {
      queues.push_back({{"vhost", "/"},
                        {"name", "q" + std::to_string(1000 + i)},
                        {"durable", false},
                        {"auto_delete", false},
                        {"arguments", json::object()}});
    }
    const auto file = folder_.path() / "definitions.json";
    std::ofstream(file) << json::serialize(json::object{{"queues", queues}});
    start([&](Config& config) { config.load_definitions = file; });
  }

  test::TempDir folder_;
  std::unique_ptr<Server> server_;
};

json::value result_of(const std::string& answer) {
  const json::value parsed = json::parse(answer);
  const json::value* result = parsed.as_object().if_contains("result");
  if (result != nullptr) return *result;
  ADD_FAILURE() << answer;
  return {};
}

std::int64_t error_code_of(const std::string& answer) {
  const json::value parsed = json::parse(answer);
  const json::value* error = parsed.as_object().if_contains("error");
  return error == nullptr ? 0 : error->at("code").as_int64();
}

// --- HTTP ---

TEST_F(AdminDoor, AnswersPlainHttp) {
  start();
  const struct {
    const char* request;
    int status;
    const char* head;
    const char* body;
  } cases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, "Content-Type: text/html", "/ws"},
      {"GET /?a=b HTTP/1.0\r\n\r\n", 200, "Content-Type: text/html", "/ws"},
      {"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n", 200, "", "ok"},
      {"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n", 200, "", "ok"},
      {"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", 426, "Upgrade: websocket", "WebSocket"},
      {"GET /api/overview HTTP/1.1\r\nHost: x\r\n\r\n", 404, "", "admin port"},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 405, "Allow: GET, HEAD", ""},
      {"hello there\r\n\r\n", 400, "", "Bad request"},
      {"\x16\x03\x01\x02\x01\x01\r\n\r\n", 400, "", "Bad request"},
      // Wants a WebSocket of another version.
      {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       426, "Sec-WebSocket-Version: 13", ""},
      {"GET /amqp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       404, "", "/ws"},
      {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly",
       400, "", "behind the request"},
  };
  for (const auto& c : cases) {
    AdminSocket socket(port());
    const AdminSocket::Response response = socket.ask(c.request);
    EXPECT_EQ(response.status, c.status) << c.request << response.head;
    EXPECT_NE(response.head.find(c.head), std::string::npos) << c.request << response.head;
    EXPECT_NE(response.body.find(c.body), std::string::npos) << c.request << response.body;
  }
  AdminSocket head(port());
  const AdminSocket::Response response = head.ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
}

TEST_F(AdminDoor, RefusesAHeaderWithoutEnd) {
  start();
  AdminSocket socket(port());
  const AdminSocket::Response response =
      socket.ask("GET / HTTP/1.1\r\nX: " + std::string(kMaxHttpHeaderBytes + 1, 'x'));
  EXPECT_EQ(response.status, 400);
}

TEST_F(AdminDoor, ClosesWhoDoesNotLogInInTime) {
  start([](Config& config) { config.handshake_timeout_ms = 200; });
  AdminSocket silent(port());
  EXPECT_EQ(silent.receive_all(), "");
  AdminSocket slow(port());
  slow.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(slow.receive_all(), "");
  AdminSocket anonymous(port());
  ASSERT_EQ(anonymous.upgrade(), 101);
  anonymous.receive_all();
  // Whoever has logged in stays.
  AdminSocket known(port());
  ASSERT_EQ(known.upgrade(kGuest), 101);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  result_of(known.call(kOverview));
}

TEST_F(AdminDoor, LimitsSessions) {
  start();
  std::vector<std::unique_ptr<AdminSocket>> all;
  for (std::size_t i = 0; i < kMaxSessions; ++i) {
    all.push_back(std::make_unique<AdminSocket>(port()));
    ASSERT_EQ(all.back()->upgrade(kGuest), 101);
  }
  AdminSocket one_too_many(port());
  EXPECT_EQ(one_too_many.receive_all(), "");
  // The places come free again once the broker has seen the end of a session.
  all.front().reset();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int status = 0;
  while (status == 0 && std::chrono::steady_clock::now() < until) {
    try {
      status = AdminSocket(port()).upgrade(kGuest);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  EXPECT_EQ(status, 101);
}

TEST_F(AdminDoor, SocketsThatOnlyStandThereKeepNobodyOut) {
  start();
  std::vector<std::unique_ptr<AdminSocket>> idle;
  for (std::size_t i = 0; i < kMaxSessions; ++i) {
    idle.push_back(std::make_unique<AdminSocket>(port()));
  }
  AdminSocket known(port());
  ASSERT_EQ(known.upgrade(kGuest), 101);
  EXPECT_EQ(AdminSocket(port()).ask("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  EXPECT_EQ(idle.front()->receive_all(), "") << "the first of them made room";
  for (int i = 0; i < 10; ++i) idle.push_back(std::make_unique<AdminSocket>(port()));
  result_of(known.call(kOverview));
}

// --- login ---

TEST_F(AdminDoor, LogsInByHttpBasic) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  EXPECT_EQ(result_of(socket.call(kOverview)).at("product_name").as_string(), "StoatMQ");
}

TEST_F(AdminDoor, RefusesLoginsByHttp) {
  start();
  const struct {
    const char* name;
    const char* field;
  } cases[] = {
      {"guest:geust", "Authorization: Basic Z3Vlc3Q6Z2V1c3Q=\r\n"},
      {"nobody:x", "Authorization: Basic bm9ib2R5Ong=\r\n"},
      {"not base64", "Authorization: Basic ***\r\n"},
      {"another scheme", "Authorization: Bearer abc\r\n"},
  };
  for (const auto& c : cases) {
    AdminSocket socket(port());
    EXPECT_EQ(socket.upgrade(c.field), 401) << c.name;
    EXPECT_NE(socket.receive_all().find("Login refused"), std::string::npos) << c.name;
  }
}

TEST_F(AdminDoor, LogsInByFirstMessage) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(), 101);
  EXPECT_EQ(error_code_of(socket.call(kOverview)), 401);
  EXPECT_EQ(error_code_of(socket.call(R"({"jsonrpc":"2.0","id":1,"method":"login",
      "params":{"user":"guest","password":"wrong"}})")),
            401);
  EXPECT_EQ(result_of(socket.call(kLogin)).at("user").as_string(), "guest");
  result_of(socket.call(kOverview));
}

TEST_F(AdminDoor, RefusesPagesFromElsewhere) {
  start();
  AdminSocket evil(port());
  EXPECT_EQ(evil.upgrade(std::string(kGuest) + "Origin: http://evil.example\r\n"), 403);
  AdminSocket own(port());
  EXPECT_EQ(own.upgrade(std::string(kGuest) + "Origin: http://localhost:15672\r\n"), 101);
}

// --- messages ---

TEST_F(AdminDoor, SurvivesWhatIsNoRequest) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  EXPECT_EQ(error_code_of(socket.call("hello")), -32700);
  EXPECT_EQ(error_code_of(socket.call("")), -32700);
  EXPECT_EQ(error_code_of(socket.call(std::string(100'000, '['))), -32700);
  EXPECT_EQ(error_code_of(socket.call("7")), -32600);
  EXPECT_EQ(error_code_of(socket.call(R"({"jsonrpc":"2.0","id":1,"method":"no"})")), -32601);
  const json::value batch =
      json::parse(socket.call("[" + std::string(kOverview) + ",7," + kOverview + "]"));
  ASSERT_EQ(batch.as_array().size(), 3u);
  EXPECT_TRUE(batch.at(0).as_object().contains("result"));
  EXPECT_EQ(batch.at(1).at("error").at("code").as_int64(), -32600);
  result_of(socket.call(kOverview));
}

TEST_F(AdminDoor, PutsFragmentsTogether) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  const std::string_view text = kOverview;
  socket.send_frame(AdminSocket::kText, text.substr(0, 10), false);
  socket.send_frame(AdminSocket::kPing, "are you there");
  socket.send_frame(AdminSocket::kContinuation, text.substr(10, 1), false);
  socket.send_frame(AdminSocket::kContinuation, "", false);
  const AdminSocket::Frame pong = socket.receive_frame();
  EXPECT_EQ(pong.opcode, AdminSocket::kPong);
  EXPECT_EQ(pong.payload, "are you there");
  socket.send_frame(AdminSocket::kContinuation, text.substr(11), true);
  result_of(socket.receive_text());
}

TEST_F(AdminDoor, TakesBytesOneByOne) {
  start();
  AdminSocket recorder(port());
  ASSERT_EQ(recorder.upgrade(kGuest), 101);
  // A masked frame by hand: 0x81, masked length, a mask of zeros, the text.
  const std::string text = kOverview;
  std::string frame{static_cast<char>(0x81), static_cast<char>(0x80 | text.size()), 0, 0, 0, 0};
  frame += text;
  for (const char byte : frame) recorder.send({&byte, 1});
  result_of(recorder.receive_text());
}

TEST_F(AdminDoor, ClosesOnWhatItCannotRead) {
  start();
  const struct {
    const char* name;
    bool logged_in;
    std::function<void(AdminSocket&)> send;
    int close_code;
  } cases[] = {
      {"too large before the login", false,
       [](AdminSocket& s) { s.send_text(std::string(kMaxLoginMessageBytes + 1, ' ')); }, 1009},
      {"announced too large", true,
       [](AdminSocket& s) { s.send_frame_head(AdminSocket::kText, kMaxMessageBytes + 1); }, 1009},
      {"announced far too large", true,
       [](AdminSocket& s) { s.send_frame_head(AdminSocket::kText, std::uint64_t{1} << 62); }, 1009},
      {"fragments too large together", true,
       [](AdminSocket& s) {
         s.send_frame(AdminSocket::kText, std::string(kMaxMessageBytes / 2, ' '), false);
         s.send_frame(AdminSocket::kContinuation, std::string(kMaxMessageBytes / 2, ' '), false);
         s.send_frame(AdminSocket::kContinuation, " ", false);
       },
       1009},
      {"binary", true, [](AdminSocket& s) { s.send_frame(AdminSocket::kBinary, kOverview); }, 1003},
      {"not UTF-8", true, [](AdminSocket& s) { s.send_text("\xff"); }, 1007},
      {"length written too long", true,
       [](AdminSocket& s) { s.send_frame_head(AdminSocket::kText, 5); }, 1002},
      {"not masked", true,
       [](AdminSocket& s) { s.send_frame(AdminSocket::kText, kOverview, true, false); }, 1002},
      {"unknown opcode", true, [](AdminSocket& s) { s.send_frame(5, ""); }, 1002},
      {"continues nothing", true,
       [](AdminSocket& s) { s.send_frame(AdminSocket::kContinuation, "x"); }, 1002},
      {"goodbye", true, [](AdminSocket& s) { s.send_frame(AdminSocket::kClose, "\x03\xe8"); },
       1000},
  };
  for (const auto& c : cases) {
    AdminSocket socket(port());
    ASSERT_EQ(socket.upgrade(c.logged_in ? kGuest : ""), 101) << c.name;
    c.send(socket);
    const AdminSocket::Frame frame = socket.receive_frame();
    EXPECT_EQ(frame.opcode, AdminSocket::kClose) << c.name;
    EXPECT_EQ(frame.close_code(), c.close_code) << c.name;
  }
  AdminSocket after(port());
  ASSERT_EQ(after.upgrade(kGuest), 101);
  result_of(after.call(kOverview));
}

TEST_F(AdminDoor, TakesALargeMessage) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  const std::string payload(kMaxMessageBytes - 1000, 'x');
  const json::value answer = result_of(socket.call(
      R"({"jsonrpc":"2.0","id":1,"method":"messages.publish","params":{"vhost":"/","exchange":"",
      "routing_key":"nowhere","payload":")" +
      payload + R"("}})"));
  EXPECT_FALSE(answer.at("routed").as_bool());
}

TEST_F(AdminDoor, PublishesToAConsumer) {
  start();
  test::WireClient consumer(server_->amqp_port(), test::ConnectOptions());
  consumer.declare_queue(1, "orders");
  consumer.consume(1, "orders", "tag", true);
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  const json::value answer = result_of(socket.call(
      R"({"jsonrpc":"2.0","id":1,"method":"messages.publish","params":{"vhost":"/","exchange":"",
      "routing_key":"orders","payload":"h\u00e9","properties":{"headers":{"n":1}}}})"));
  EXPECT_TRUE(answer.at("routed").as_bool());
  const test::Delivery delivery = consumer.expect_delivery(1);
  EXPECT_EQ(delivery.body, "h\xc3\xa9");
  const wire::Properties properties = delivery.properties();
  ASSERT_TRUE(properties.headers);
  EXPECT_TRUE(wire::equivalent(*properties.headers, wire::Table{{"n", std::int64_t{1}}}));
  const json::value totals = result_of(socket.call(kOverview)).at("object_totals");
  EXPECT_EQ(totals.at("connections").as_int64(), 1);
  EXPECT_EQ(totals.at("channels").as_int64(), 1);
  EXPECT_EQ(totals.at("consumers").as_int64(), 1);
}

// --- subscriptions ---

TEST_F(AdminDoor, SendsStats) {
  start();
  AdminSocket socket(port());
  ASSERT_EQ(socket.upgrade(kGuest), 101);
  const json::value subscription = result_of(socket.call(
      R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"topic":"stats","interval_ms":100}})"));
  for (int i = 0; i < 3; ++i) {
    const json::value stats = json::parse(socket.receive_text());
    EXPECT_EQ(stats.at("method").as_string(), "stats");
    EXPECT_EQ(stats.at("params").at("subscription"), subscription.at("subscription"));
    EXPECT_EQ(stats.at("params").at("stats").at("object_totals").at("queues").as_int64(), 0);
  }
  socket.send_text(
      R"({"jsonrpc":"2.0","id":9,"method":"unsubscribe","params":{"subscription":1}})");
  // What was under way comes first; behind the answer comes nothing.
  while (!json::parse(socket.receive_text()).as_object().contains("id")) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const json::value next = json::parse(socket.call(kOverview));
  EXPECT_EQ(next.at("id").as_int64(), 2);
}

// A peer that asks for a lot and reads nothing: its requests wait in its socket, its stats are not
// made, and others notice nothing.
TEST_F(AdminDoor, LetsASlowSubscriberMissStats) {
  constexpr std::size_t kQueues = 1000;
  constexpr int kRequests = 40;
  start_with_queues(kQueues);
  AdminSocket slow(port(), 4096);
  ASSERT_EQ(slow.upgrade(kGuest), 101);
  result_of(slow.call(
      R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"topic":"stats","interval_ms":100}})"));
  for (int i = 0; i < kRequests; ++i) {
    slow.send_text(R"({"jsonrpc":"2.0","method":"queues.list","id":)" + std::to_string(100 + i) +
                   "}");
  }
  AdminSocket other(port());
  ASSERT_EQ(other.upgrade(kGuest), 101);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1000);
  while (std::chrono::steady_clock::now() < until) result_of(other.call(kOverview));

  int answers = 0;
  std::int64_t missed = 0;
  while (answers < kRequests || missed == 0) {
    const json::value message = json::parse(slow.receive_text());
    if (message.as_object().contains("id")) {
      ASSERT_EQ(message.at("id").as_int64(), 100 + answers);
      ASSERT_EQ(message.at("result").at("item_count").as_int64(), std::int64_t{kQueues});
      ++answers;
    } else {
      missed += message.at("params").at("missed").as_int64();
    }
    ASSERT_LE(answers, kRequests);
  }
}

// --- the end ---

TEST_F(AdminDoor, SaysGoodbyeWhenTheBrokerStops) {
  start();
  AdminSocket idle(port());
  ASSERT_EQ(idle.upgrade(kGuest), 101);
  AdminSocket subscriber(port());
  ASSERT_EQ(subscriber.upgrade(kGuest), 101);
  result_of(subscriber.call(
      R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"topic":"stats"}})"));
  AdminSocket silent(port());
  std::thread stopper([&] { server_->stop(); });
  const AdminSocket::Frame goodbye = idle.receive_frame();
  EXPECT_EQ(goodbye.opcode, AdminSocket::kClose);
  EXPECT_EQ(goodbye.close_code(), 1001);
  idle.send_frame(AdminSocket::kClose, goodbye.payload);
  idle.receive_all();
  silent.receive_all();
  stopper.join();
}

TEST_F(AdminDoor, RefusesAPortThatIsTaken) {
  start();
  Config config;
  config.amqp_port = 0;
  config.admin_port = port();
  config.data_dir = folder_.path() / "second";
  Server second(config);
  try {
    second.start();
    FAIL() << "started";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what())
                  .find("admin endpoint on 127.0.0.1, port " + std::to_string(config.admin_port)),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stoat::broker::admin
