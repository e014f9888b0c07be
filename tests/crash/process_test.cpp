// stoatd as a process: how it starts, refuses to start, and stops.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names
namespace fs = std::filesystem;

struct Ended {
  ExitStatus status;
  std::string log;
};

// Runs stoatd with these arguments to its end.
Ended run(const fs::path& data_dir, std::vector<std::string> arguments) {
  BrokerProcess::Options options;
  options.data_dir = data_dir;
  options.arguments = std::move(arguments);
  options.wait_until_listening = false;
  BrokerProcess process(std::move(options));
  Ended ended;
  ended.status = process.wait();
  ended.log = process.log();
  return ended;
}

void write(const fs::path& file, std::string_view text) {
  std::ofstream(file) << text;
}

// Every file below a folder with its contents.
std::map<std::string, std::string> snapshot(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    files[entry.path().string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

// The last line that was logged: the one a person looks at.
std::string last_line(std::string log) {
  while (!log.empty() && log.back() == '\n') log.pop_back();
  return log.substr(log.rfind('\n') + 1);
}

TEST(Process, SigtermEndsItWithZeroAndTellsItsClients) {
  BrokerProcess broker;
  WireClient idle(broker.port(), ConnectOptions{});
  WireClient consumer(broker.port(), ConnectOptions{});
  consumer.declare_queue(1, "q", {}, true);
  ConfirmedPublisher({"", "q"}, 0).publish(broker.port(), 100);
  consumer.consume(1, "q");
  for (int i = 0; i < 100; ++i) consumer.expect_delivery(1);
  consumer.ack(1, 50, true);

  kill(broker.pid(), SIGTERM);
  for (WireClient* client : {&idle, &consumer}) {
    EXPECT_EQ(client->expect_connection_close(320),
              "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'");
  }
  const ExitStatus status = broker.wait();
  EXPECT_TRUE(status.exited);
  EXPECT_EQ(status.code, 0);

  broker.start();
  WireClient client(broker.port(), ConnectOptions{});
  const auto messages = take_all(client, "q");
  ASSERT_EQ(messages.size(), 50u) << "after a clean stop no acknowledged message returns";
  EXPECT_EQ(ConfirmedPublisher::id_of(messages[0].body), 50u);
  for (const Delivery& message : messages) EXPECT_TRUE(message.method.redelivered);
}

TEST(Process, AClientThatDoesNotAnswerDoesNotHoldUpTheEnd) {
  BrokerProcess broker;
  WireClient silent(broker.port(), ConnectOptions{});
  WireClient in_handshake(broker.port());
  in_handshake.expect_start();
  const ExitStatus status = broker.terminate();
  EXPECT_TRUE(status.exited);
  EXPECT_EQ(status.code, 0);
}

TEST(Process, ASecondStartOnTheSameFolderIsRefused) {
  BrokerProcess first;
  const Ended second = run(first.data_dir(), {});
  EXPECT_TRUE(second.status.exited);
  EXPECT_NE(second.status.code, 0);
  EXPECT_NE(last_line(second.log).find(first.data_dir().string()), std::string::npos) << second.log;
  WireClient client(first.port(), ConnectOptions{});
  client.declare_queue(1, "q", {}, true);  // the first does not notice
  client.delete_queue(1, "q");
}

TEST(Process, AFolderOfAnotherKindIsRefusedUntouched) {
  TempDir folder;
  write(folder.path() / "thesis.txt", "forty thousand words");
  fs::create_directory(folder.path() / "db");
  write(folder.path() / "db" / "CURRENT", "not ours");
  const auto before = snapshot(folder.path());
  const Ended ended = run(folder.path(), {});
  EXPECT_TRUE(ended.status.exited);
  EXPECT_NE(ended.status.code, 0);
  EXPECT_NE(last_line(ended.log).find(folder.path().string()), std::string::npos) << ended.log;
  EXPECT_EQ(snapshot(folder.path()), before);
}

TEST(Process, AFileInPlaceOfTheFolderIsRefused) {
  TempDir folder;
  const fs::path file = folder.path() / "file";
  write(file, "contents");
  const Ended ended = run(file, {});
  EXPECT_TRUE(ended.status.exited);
  EXPECT_NE(ended.status.code, 0);
  EXPECT_EQ(snapshot(folder.path()).at(file.string()), "contents");
}

TEST(Process, AFolderOfANewerFormatIsRefusedUntouched) {
  TempDir folder;
  const fs::path data = folder.path() / "data";
  {
    BrokerProcess::Options options;
    options.data_dir = data;
    BrokerProcess broker(std::move(options));
    EXPECT_EQ(broker.terminate().code, 0);
  }
  std::string format;
  {
    std::ifstream in(data / "FORMAT");
    format = {std::istreambuf_iterator<char>(in), {}};
  }
  const auto digit = format.find_last_of("0123456789");
  ASSERT_NE(digit, std::string::npos) << "the format file holds a version: " << format;
  write(data / "FORMAT", format.replace(digit, 1, "999"));
  const auto before = snapshot(data);
  const Ended ended = run(data, {});
  EXPECT_TRUE(ended.status.exited);
  EXPECT_NE(ended.status.code, 0);
  EXPECT_NE(last_line(ended.log).find("999"), std::string::npos) << ended.log;
  EXPECT_EQ(snapshot(data), before);
}

TEST(Process, BadConfigurationEndsWithTwoAndOneLineThatNamesIt) {
  TempDir folder;
  const fs::path file = folder.path() / "stoat.toml";
  const fs::path data = folder.path() / "data";
  struct Case {
    std::string toml;
    std::vector<std::string> arguments;
    std::string named;
  };
  const Case cases[] = {
      {"", {"--amqp-port", "70000"}, "70000"},
      {"", {"--amqp-port", "many"}, "many"},
      {"", {"--no-such-flag"}, "no-such-flag"},
      {"", {"--log-level", "loud"}, "loud"},
      {"", {"--workers", "0"}, "workers"},
      {"", {"--bind", "not an address"}, "not an address"},
      {"unknown_key = 1\n", {"--config", file.string()}, "unknown_key"},
      {"[memory]\nalarm_fraction = \"half\"\n", {"--config", file.string()}, "alarm_fraction"},
      {"this is = = not toml\n", {"--config", file.string()}, file.string()},
      {"", {"--config", (folder.path() / "missing.toml").string()}, "missing.toml"},
      {"load_definitions = \"" + (folder.path() / "missing.json").string() + "\"\n",
       {"--config", file.string()},
       "missing.json"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.named);
    write(file, c.toml);
    const Ended ended = run(data, c.arguments);
    EXPECT_TRUE(ended.status.exited);
    EXPECT_EQ(ended.status.code, 2) << ended.log;
    EXPECT_NE(last_line(ended.log).find(c.named), std::string::npos) << ended.log;
  }
}

TEST(Process, APortInUseIsSaidClearly) {
  BrokerProcess first;
  TempDir folder;
  const std::string port = std::to_string(first.port());
  const Ended second = run(folder.path() / "data", {"--amqp-port", port});
  EXPECT_TRUE(second.status.exited);
  EXPECT_NE(second.status.code, 0);
  EXPECT_NE(last_line(second.log).find(port), std::string::npos) << second.log;
}

TEST(Process, HelpAndVersionEndWithZero) {
  TempDir folder;
  for (const char* flag : {"--help", "--version"}) {
    const Ended ended = run(folder.path() / "data", {flag});
    EXPECT_TRUE(ended.status.exited);
    EXPECT_EQ(ended.status.code, 0);
    EXPECT_FALSE(ended.log.empty());
    EXPECT_FALSE(fs::exists(folder.path() / "data"));
  }
}

// Sockets of peers that never log in take no descriptor that the store needs.
TEST(Process, ConnectionsLeaveTheStoreItsDescriptors) {
  constexpr int kDescriptors = 200;
  BrokerProcess::Options options;
  options.descriptor_limit = kDescriptors;
  BrokerProcess broker(std::move(options));
  EXPECT_NE(broker.log().find("max_connections is lowered"), std::string::npos) << broker.log();
  WireClient client(broker.port(), ConnectOptions{});
  client.declare_queue(1, "q", {}, true);
  std::vector<std::unique_ptr<FrameSocket>> idle;
  for (int i = 0; i < kDescriptors + 20; ++i) {
    idle.push_back(std::make_unique<FrameSocket>(broker.port()));
  }
  // Enough for many new logs and tables.
  client.confirm_select(1);
  Properties persistent;
  persistent.delivery_mode = 2;
  const std::string body(1'000'000, 'm');
  for (std::uint64_t i = 1; i <= 200; ++i) client.publish(1, "", "q", body, persistent);
  for (const bool acked : client.collect_confirms(1, 200)) EXPECT_TRUE(acked);
  EXPECT_EQ(broker.terminate().code, 0) << broker.log();
}

// The limit of a file's size comes as a signal, which would end the process without a word.
TEST(Process, AFailureOfTheStoreEndsItSoonAndIsSaid) {
  BrokerProcess::Options options;
  options.arguments = {"--workers", "4"};
  BrokerProcess broker(std::move(options));
  WireClient client(broker.port(), ConnectOptions{});
  for (int i = 0; i < 8; ++i) client.declare_queue(1, "q" + std::to_string(i), {}, true);
  const rlimit limit{200'000, 200'000};
  ASSERT_EQ(prlimit(broker.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  Properties persistent;
  persistent.delivery_mode = 2;
  const auto begin = TestClock::now();
  for (int i = 0; i < 16; ++i) {
    client.publish(1, "", "q" + std::to_string(i % 8), std::string(100'000, 'm'), persistent);
  }
  const ExitStatus status = broker.wait();
  EXPECT_TRUE(status.exited) << "signal " << status.signal;
  EXPECT_EQ(status.code, 1);
  EXPECT_NE(broker.log().find("the store failed"), std::string::npos) << broker.log();
  // Each worker's part of the stop has a limit of 5 s, and none of them waits for the store.
  EXPECT_LT(TestClock::now() - begin, std::chrono::seconds(5));
}

TEST(Process, TheLogHasNoPayloadsAndOneLineAConnection) {
  BrokerProcess broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    client.declare_queue(1, "q");
    client.publish(1, "", "q", "the secret payload");
    client.drain(1, "q");
    client.close();
    FrameSocket http(broker.port());
    http.send("GET / HTTP/1.1\r\n\r\n");
    http.receive_end(kReplyLimit);
    FrameSocket tls(broker.port());
    tls.send("\x16\x03\x01 and so on");
    tls.receive_end(kReplyLimit);
    ConnectOptions wrong;
    wrong.password = "the wrong password";
    EXPECT_THROW(WireClient(broker.port(), wrong), Unexpected);
  }
  broker.terminate();
  const std::string log = broker.log();
  EXPECT_EQ(log.find("secret payload"), std::string::npos);
  EXPECT_EQ(log.find("wrong password\n"), std::string::npos) << "a password was logged";
  for (const char* word : {"opened", "closed", "HTTP", "TLS", "refused"})
    EXPECT_NE(log.find(word), std::string::npos) << word << " is not in:\n" << log;
}

}  // namespace
}  // namespace stoat::test
