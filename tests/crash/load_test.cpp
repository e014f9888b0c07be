// kill -9 while producers and consumers are at work, with a checker that knows what each of them
// was told.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names

constexpr int kQueues = 2;
constexpr std::uint64_t kIdsPerProducer = 1'000'000'000;

std::string queue_name(int index) {
  return "load." + std::to_string(index);
}

// Everything that was seen, over all rounds. Thread: any.
class Ledger {
 public:
  void received(std::uint64_t id, bool redelivered) {
    const std::lock_guard lock(mutex_);
    const bool first = times_[id]++ == 0;
    if (!first && !redelivered) unmarked_.insert(id);
  }
  void acked(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    acked_.insert(id);
  }

  // Confirmed messages that nobody ever received.
  std::vector<std::uint64_t> missing(const std::vector<std::uint64_t>& confirmed) const {
    std::vector<std::uint64_t> none;
    for (const std::uint64_t id : confirmed)
      if (!times_.contains(id)) none.push_back(id);
    return none;
  }
  // Received again without being marked as redelivered.
  const std::set<std::uint64_t>& unmarked() const { return unmarked_; }
  std::size_t messages() const { return times_.size(); }
  std::size_t acks() const { return acked_.size(); }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, int> times_;
  std::set<std::uint64_t> acked_;
  std::set<std::uint64_t> unmarked_;
};

// Consumes and acknowledges in small runs until the connection is lost; sometimes requeues.
void consume_until_lost(std::uint16_t port, const std::string& queue, Ledger& ledger) {
  try {
    WireClient client(port, ConnectOptions{});
    client.qos(1, 50);
    client.consume(1, queue);
    std::vector<std::uint64_t> open;
    while (true) {
      const Delivery message = client.expect_delivery(1);
      const std::uint64_t id = ConfirmedPublisher::id_of(message.body);
      ledger.received(id, message.method.redelivered);
      if (id % 53 == 0 && !message.method.redelivered) {
        client.nack(1, message.method.delivery_tag, false, true);
        continue;
      }
      open.push_back(id);
      if (open.size() < 10) continue;
      client.ack(1, message.method.delivery_tag, true);
      for (const std::uint64_t done : open) ledger.acked(done);
      open.clear();
    }
  } catch (const std::exception&) {
    // The broker is gone.
  }
}

TEST(UnderLoad, NothingConfirmedIsLostAndNothingComesAgainUnmarked) {
  BrokerProcess broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    for (int i = 0; i < kQueues; ++i) client.declare_queue(1, queue_name(i), {}, true);
  }
  Ledger ledger;
  std::vector<ConfirmedPublisher> publishers;
  for (int i = 0; i < kQueues; ++i)
    publishers.emplace_back(ConfirmedPublisher::Target{"", queue_name(i)},
                            static_cast<std::uint64_t>(i) * kIdsPerProducer);

  std::minstd_rand random(815);
  for (int round = 0; round < crash_rounds(6); ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kQueues; ++i) {
      threads.emplace_back([&, i, port = broker.port()] {
        publishers[static_cast<std::size_t>(i)].publish_until_lost(
            port, 1'000'000, [](std::uint64_t id) { return 12 + id % 1500; });
      });
      threads.emplace_back(
          [&, i, port = broker.port()] { consume_until_lost(port, queue_name(i), ledger); });
    }
    std::this_thread::sleep_for(milliseconds(100 + random() % 400));
    broker.kill9();
    for (std::thread& thread : threads) thread.join();
    broker.start();
  }

  WireClient client(broker.port(), ConnectOptions{});
  std::size_t confirmed = 0;
  for (int i = 0; i < kQueues; ++i) {
    for (const Delivery& message : take_all(client, queue_name(i)))
      ledger.received(ConfirmedPublisher::id_of(message.body), message.method.redelivered);
    const auto& mine = publishers[static_cast<std::size_t>(i)].confirmed();
    confirmed += mine.size();
    const auto missing = ledger.missing(mine);
    EXPECT_TRUE(missing.empty()) << missing.size() << " of " << queue_name(i)
                                 << " are missing, the first is " << missing.front();
  }
  EXPECT_TRUE(ledger.unmarked().empty()) << ledger.unmarked().size() << " came again unmarked";
  EXPECT_GT(confirmed, 0u);
  EXPECT_GT(ledger.acks(), 0u) << "the load was none";
  EXPECT_GE(ledger.messages(), confirmed);
}

}  // namespace
}  // namespace stoat::test
