#include <gtest/gtest.h>
#include <unistd.h>
#include <stoat/client/blocking.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/support/broker_process.hpp"
#include "tests/support/program.hpp"
#include "tests/support/test_broker.hpp"

// stoat-perf as a user starts it, against a broker in this process: every mode once, and that it
// says so when something goes wrong.

namespace {

using stoat::client::Message;
using stoat::test::Program;
namespace blocking = stoat::client::blocking;

class Perf : public testing::Test {
 protected:
  const std::string& uri() const { return uri_; }
  std::string command(const std::string& arguments) const {
    return STOAT_BIN_DIR "/stoat-perf " + uri() + " --json " + arguments;
  }
  // Runs it to its end; output_ has what it printed.
  int run(const std::string& arguments) {
    Program program(command(arguments));
    const int status = program.wait();
    output_ = program.output();
    return status;
  }
  // A figure of the JSON line; -1: it has none of that name.
  double figure(const std::string& name) const {
    const std::string key = '"' + name + "\": ";
    const auto at = output_.rfind(key);
    return at == std::string::npos ? -1 : std::strtod(output_.c_str() + at + key.size(), nullptr);
  }
  std::uint64_t count(const std::string& name) const {
    return static_cast<std::uint64_t>(figure(name));
  }
  blocking::Channel open_channel() {
    connection_.emplace(blocking::Connection::connect(uri()));
    return connection_->open_channel();
  }
  // Begins a run without an end and disturbs it once messages flow; its exit status.
  template <class Disturb>
  int run_disturbed(const std::string& arguments, Disturb disturb) {
    Program program(command("-i 0.1 --wait-seconds 0.3 " + arguments));
    while (program.read_until("received ")) {
      if (program.output().find(" received 0;") == std::string::npos) break;
    }
    disturb();
    const int status = program.wait();
    output_ = program.output();
    return status;
  }

  stoat::test::TestBroker broker_;
  std::string uri_ = "amqp://guest:guest@127.0.0.1:" + std::to_string(broker_.port());
  std::optional<blocking::Connection> connection_;
  std::string output_;
};

TEST_F(Perf, SendsAndReceivesInEveryMode) {
  const struct {
    const char* arguments;
    std::uint64_t sent;
    std::uint64_t received;
  } cases[] = {
      {"-C 300", 300, 300},
      {"-C 50 -c 1", 50, 50},
      {"-C 300 -p 1 -a 1", 300, 300},
      {"-C 300 -p 3", 300, 300},
      {"-C 300 -c 0 --auto-ack -s 100 --transient", 300, 300},
      {"-C 300 -s 0", 300, 300},
      {"-C 300 -s 23", 300, 300},
      {"-C 20 -s 300000", 20, 20},
      {"-C 300 -x 1 -q 4 -y 2", 300, 300},
      {"-C 100 -x 3 -q 3 -y 6 --producer-threads 2 --consumer-threads 3", 300, 300},
      {"-C 100 -x 4 -q 2 -y 2 -t direct", 400, 400},
      {"-C 100 -x 2 -q 3 -y 3 -t fanout", 200, 600},
      {"-C 100 -x 2 -q 3 -y 3 -t topic --bindings 300", 200, 200},
      {"-C 100 -x 2 -q 3 -y 3 -t headers --bindings 30", 200, 200},
      {"-C 300 -f mandatory --queue-args x-max-priority=3", 300, 300},
      {"-C 100 -r 2000", 100, 100},
  };
  for (const auto& [arguments, sent, received] : cases) {
    ASSERT_EQ(run(arguments), 0) << arguments << '\n' << output_;
    EXPECT_EQ(count("sent"), sent) << arguments;
    EXPECT_EQ(count("received"), received) << arguments;
    EXPECT_EQ(count("left"), 0u) << arguments;
    EXPECT_NE(output_.find("\"clean\": true"), std::string::npos) << output_;
  }
}

TEST_F(Perf, KeepsTheRateThatWasAskedFor) {
  ASSERT_EQ(run("-x 2 -r 100 -z 1"), 0) << output_;
  // Never faster; how much slower depends on the machine.
  EXPECT_LE(count("sent"), 210u);
  EXPECT_GT(count("sent"), 2u);
}

TEST_F(Perf, FillsThenDrains) {
  ASSERT_EQ(run("--fill -C 500 -q 2"), 0) << output_;
  EXPECT_EQ(count("left"), 500u);
  ASSERT_EQ(run("--drain -q 2 -y 2"), 0) << output_;
  EXPECT_EQ(count("received"), 500u);
  EXPECT_EQ(count("left"), 0u);
}

TEST_F(Perf, HasEveryFigure) {
  ASSERT_EQ(run("-C 20000 --pid " + std::to_string(::getpid())), 0) << output_;
  EXPECT_EQ(count("confirmed"), 20000u);
  for (const char* name :
       {"sent_rate", "confirmed_rate", "received_rate", "p50", "p95", "p99", "p99.9", "max",
        "broker_cpu_us_per_message", "broker_rss_mb", "broker_peak_rss_mb"})
    EXPECT_GT(figure(name), 0) << name;
  EXPECT_GE(figure("p99"), figure("p50"));
}

TEST_F(Perf, ReportsDuplicatesAndDisorder) {
  ASSERT_EQ(run("--fill -C 50"), 0) << output_;
  auto channel = open_channel();
  const auto first = channel.get("stoat-perf-0", {.no_ack = true});
  ASSERT_TRUE(first);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(channel.publish("", "stoat-perf-0", Message(std::string(first->body))).acked());
  EXPECT_EQ(run("--drain --wait-seconds 0.3"), 1) << output_;
  EXPECT_EQ(count("received"), 51u);
  EXPECT_EQ(count("duplicated"), 1u);
  EXPECT_EQ(count("disordered"), 1u);
}

TEST_F(Perf, ReportsStrangers) {
  ASSERT_EQ(run("--fill -C 5"), 0) << output_;
  auto channel = open_channel();
  ASSERT_TRUE(
      channel.publish("", "stoat-perf-0", Message("not from stoat-perf, but long")).acked());
  EXPECT_EQ(run("--drain"), 1) << output_;
  EXPECT_EQ(count("strange"), 1u);
}

TEST_F(Perf, ReportsLosses) {
  EXPECT_EQ(run_disturbed("-t direct -r 2000 -z 1",
                          [this] {
                            open_channel().unbind_queue("stoat-perf-0", "stoat-perf-direct",
                                                        "stoat-perf-0");
                          }),
            1)
      << output_;
  EXPECT_GT(count("lost"), 0u) << output_;
  EXPECT_EQ(count("returned"), 0u);
}

TEST_F(Perf, ReportsReturns) {
  EXPECT_EQ(run_disturbed("-t direct -r 2000 -z 1 -f mandatory",
                          [this] {
                            open_channel().unbind_queue("stoat-perf-0", "stoat-perf-direct",
                                                        "stoat-perf-0");
                          }),
            1)
      << output_;
  EXPECT_GT(count("returned"), 0u) << output_;
  EXPECT_EQ(count("lost"), 0u) << output_;
}

TEST_F(Perf, ReportsACancelledConsumer) {
  EXPECT_EQ(run_disturbed("-z 20 -r 500", [this] { open_channel().delete_queue("stoat-perf-0"); }),
            1);
  EXPECT_NE(output_.find("the broker cancelled a consumer"), std::string::npos) << output_;
}

// A process of its own: stoat-perf would inherit the listener of a broker in this one.
TEST_F(Perf, ReportsABrokerThatGoes) {
  stoat::test::BrokerProcess process;
  uri_ = "amqp://127.0.0.1:" + std::to_string(process.port());
  EXPECT_EQ(run_disturbed("-z 20 -r 500", [&process] { process.kill9(); }), 1);
  EXPECT_TRUE(output_.find("the broker closed the socket") != std::string::npos ||
              output_.find("cannot receive") != std::string::npos ||
              output_.find("cannot send") != std::string::npos)
      << output_;
}

TEST_F(Perf, HoldsIdleConnectionsAndDeclaresQueues) {
  EXPECT_EQ(run("--idle-connections 5 < /dev/null"), 0);
  EXPECT_NE(output_.find("5 connections open"), std::string::npos) << output_;
  EXPECT_NE(output_.find("5 of 5 connections still open"), std::string::npos) << output_;
  EXPECT_EQ(run("--declare-queues 300"), 0) << output_;
  auto channel = open_channel();
  EXPECT_EQ(channel.delete_queue("stoat-perf-299"), 0u);
}

TEST_F(Perf, SaysWhatIsWrongWithItsUsage) {
  for (const char* arguments :
       {"--nonsense", "-p 5 -a 6", "--fill --drain", "--bindings 3", "-e x", "-t carrier-pigeon",
        "--queue-args novalue", "-z 0", "--uri nonsense"}) {
    EXPECT_EQ(run(arguments), 2) << arguments << '\n' << output_;
    EXPECT_FALSE(output_.empty());
  }
  EXPECT_EQ(run("--help"), 0);
  EXPECT_EQ(run("-C 1 --uri amqp://127.0.0.1:1"), 2);  // a broker named twice
  Program unreachable(STOAT_BIN_DIR "/stoat-perf amqp://127.0.0.1:1 -C 1");
  EXPECT_EQ(unreachable.wait(), 1);
  EXPECT_EQ(unreachable.count("cannot connect"), 1);
}

}  // namespace
