// Churn: what is made and unmade again and again leaves memory and disk where they were.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/crash/process_figures.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names

constexpr int kWarmUpCycles = 40;
constexpr int kUsualCycles = 120;
// A write buffer (32 MB) may be empty at one time and full at the other.
constexpr std::uint64_t kMostGrowthKb = (32 + 16) * 1024;
// The log is cut when its write buffers are, so it may stand anywhere below this.
constexpr std::uint64_t kMostDiskBytes = 160u << 20;
// After a stop, when nothing is left that is alive: RocksDB's own files, of which the list of
// tables alone may have 4 MB.
constexpr std::uint64_t kMostDiskAtRestBytes = 8u << 20;

class Soak : public testing::Test {
 protected:
  // Everything a cycle makes is gone again at its end.
  void cycle() {
    WireClient keeper(broker_.port(), ConnectOptions{});
    declare(keeper);
    std::vector<std::unique_ptr<WireClient>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<WireClient>(broker_.port(), ConnectOptions{}));
      use(*clients.back(), i);
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (i % 2 == 0) {
        clients[i]->socket().reset();
      } else {
        clients[i]->socket().shutdown_send();
      }
    }
    clients.clear();
    for (const char* q : {"durable", "transient"}) keeper.delete_queue(1, q);
    for (const char* x : {"x", "y"}) keeper.delete_exchange(1, x);
    keeper.close();
  }

  static void declare(WireClient& client) {
    client.declare_queue(1, "durable", {}, true);
    client.declare_queue(1, "transient");
    for (const char* x : {"x", "y"}) {
      client.call<exchange::DeclareOk>(
          1, exchange::Declare{0, x, "topic", false, true, false, false, false, {}});
    }
    client.bind_exchange(1, "y", "x", "#");
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key." + std::to_string(i) + ".*";
      client.bind(1, i % 2 == 0 ? "durable" : "transient", i % 3 == 0 ? "x" : "y", key);
    }
  }

  static void use(WireClient& client, int number) {
    client.call<queue::DeclareOk>(
        1,
        queue::Declare{0, "mine." + std::to_string(number), false, false, true, true, false, {}});
    client.open_channel(2);
    client.consume(2, number % 2 == 0 ? "durable" : "transient");
    client.confirm_select(1);
    Properties persistent;
    persistent.delivery_mode = 2;
    const std::string body(4000, 'm');
    constexpr std::uint64_t kPublishes = 60;
    for (std::uint64_t i = 0; i < kPublishes; ++i) {
      client.publish(1, "x", "key." + std::to_string(i) + ".z", body,
                     i % 2 == 0 ? persistent : Properties{});
    }
    client.collect_confirms(1, kPublishes);
    client.publish(1, "", "nowhere", body, persistent, true);
    client.expect_content<basic::Return>(1);
    // Ends with a message half sent and deliveries unacknowledged.
    std::string out;
    append_method(out, ChannelNumber(1), basic::Publish{0, "", "durable", false, false});
    append_content_header(out, ChannelNumber(1), 1 << 20, persistent.encode());
    append_body(out, ChannelNumber(1), std::string(50'000, 'h'), 131072);
    client.send_raw(out);
  }

  BrokerProcess broker_;
};

TEST_F(Soak, ChurnLeavesMemoryAndDiskWhereTheyWere) {
  for (int i = 0; i < kWarmUpCycles; ++i) cycle();
  const char* seconds = std::getenv("STOAT_SOAK_SECONDS");
  const auto until = TestClock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 0);
  int cycles = 0;
  std::vector<std::uint64_t> memory;
  while (cycles < kUsualCycles || TestClock::now() < until) {
    cycle();
    ++cycles;
    memory.push_back(memory_kb(broker_.pid(), "VmRSS"));
  }
  // It rises and falls with the write buffers; what never comes down again is in the lowest.
  const auto quarter = static_cast<std::ptrdiff_t>(memory.size() / 4);
  const std::uint64_t memory_before = *std::min_element(memory.begin(), memory.begin() + quarter);
  const std::uint64_t memory_after = *std::min_element(memory.end() - quarter, memory.end());
  const std::uint64_t disk = disk_bytes(broker_.data_dir());
  EXPECT_LT(memory_after, memory_before + kMostGrowthKb) << "after " << cycles << " cycles";
  EXPECT_LT(disk, kMostDiskBytes);
  ASSERT_EQ(broker_.terminate().code, 0);
  const std::uint64_t at_rest = disk_bytes(broker_.data_dir());
  EXPECT_LT(at_rest, kMostDiskAtRestBytes);
  std::printf(
      "%d cycles: memory %llu KB, then %llu KB; disk %llu KB, at rest %llu KB\n", cycles,
      static_cast<unsigned long long>(memory_before), static_cast<unsigned long long>(memory_after),
      static_cast<unsigned long long>(disk >> 10), static_cast<unsigned long long>(at_rest >> 10));
}

}  // namespace
}  // namespace stoat::test
