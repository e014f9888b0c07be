// The broker's memory under those who send faster or take slower than the rest can bear: inside a
// named bound, while others are served.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/crash/process_figures.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names

// Write buffers, windows and socket buffers together; a fraction of what is published here.
constexpr std::uint64_t kMostMemoryKb = 220 * 1024;
constexpr int kPublishers = 3;
constexpr std::uint64_t kBytesEach = 150u << 20;
constexpr std::size_t kBodyBytes = 16 << 10;

class Limits : public testing::Test {
 protected:
  void publish_all(const std::string& queue, bool persistent) {
    Properties properties;
    properties.delivery_mode = persistent ? 2 : 1;
    WireClient client(broker_.port(), ConnectOptions{});
    const std::string body(kBodyBytes, 'm');
    for (std::uint64_t sent = 0; sent < kBytesEach; sent += body.size()) {
      client.publish(1, "", queue, body, properties);
    }
    client.close();  // everything before it has been taken
  }
  // Runs `others` while publishers press as hard as they can into the queue.
  template <class Fn>
  void under_pressure(const std::string& queue, bool persistent, Fn others) {
    std::atomic<int> running = kPublishers;
    std::vector<std::thread> threads;
    for (int i = 0; i < kPublishers; ++i) {
      threads.emplace_back([&] {
        try {
          publish_all(queue, persistent);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        --running;
      });
    }
    int rounds = 0;
    while (running > 0) {
      others();
      ++rounds;
    }
    for (auto& thread : threads) thread.join();
    EXPECT_GT(rounds, 3) << "the others were kept waiting";
    EXPECT_LT(memory_kb(broker_.pid(), "VmHWM"), kMostMemoryKb);
  }
  // One message there and back, within the limit that every reply has.
  static void there_and_back(WireClient& client) {
    Properties persistent;
    persistent.delivery_mode = 2;
    client.publish(1, "", "other", "m", persistent);
    client.expect_confirm(1);
    ASSERT_TRUE(client.get(1, "other"));
  }
  WireClient other() {
    WireClient client(broker_.port(), ConnectOptions{});
    client.declare_queue(1, "other", {}, true);
    client.declare_queue(1, "full", {}, true);
    client.confirm_select(1);
    return client;
  }

  BrokerProcess broker_;
};

TEST_F(Limits, PublishersFasterThanTheDisk) {
  WireClient client = other();
  under_pressure("full", true, [&] { there_and_back(client); });
  EXPECT_EQ(client.ready_count(1, "full"), kPublishers * kBytesEach / kBodyBytes);
}

TEST_F(Limits, TransientMessagesThatNobodyTakes) {
  WireClient client = other();
  under_pressure("full", false, [&] { there_and_back(client); });
  EXPECT_EQ(client.ready_count(1, "full"), kPublishers * kBytesEach / kBodyBytes);
}

TEST_F(Limits, ConsumersThatDoNotReadTheirSockets) {
  WireClient client = other();
  std::vector<std::unique_ptr<WireClient>> stalled;
  for (int i = 0; i < 20; ++i) {
    stalled.push_back(std::make_unique<WireClient>(broker_.port(), ConnectOptions{}));
    stalled.back()->consume(1, "full", "", i % 2 == 0);  // and reads no more
  }
  under_pressure("full", true, [&] { there_and_back(client); });
}

TEST_F(Limits, ASlowConsumerIsNotSentWhatItHasNoCreditFor) {
  WireClient client = other();
  WireClient slow(broker_.port(), ConnectOptions{});
  slow.qos(1, 3);
  slow.consume(1, "full");
  under_pressure("full", true, [&] {
    there_and_back(client);
    const Delivery message = slow.expect_delivery(1);
    slow.ack(1, message.method.delivery_tag);
  });
}

TEST_F(Limits, MessagesThatAreBegunAndNeverEnded) {
  WireClient client = other();
  std::vector<std::unique_ptr<WireClient>> stalled;
  const std::string half(64 << 10, 'h');
  for (int i = 0; i < 200; ++i) {
    stalled.push_back(std::make_unique<WireClient>(broker_.port(), ConnectOptions{}));
    std::string out;
    append_method(out, ChannelNumber(1), basic::Publish{0, "", "full", false, false});
    append_content_header(out, ChannelNumber(1), 64 << 20, Properties{}.encode());
    append_body(out, ChannelNumber(1), half, 131072);
    stalled.back()->send_raw(out);
  }
  for (int i = 0; i < 20; ++i) there_and_back(client);
  EXPECT_LT(memory_kb(broker_.pid(), "VmHWM"), kMostMemoryKb);
}

}  // namespace
}  // namespace stoat::test
