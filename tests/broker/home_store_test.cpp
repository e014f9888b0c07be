// A home over the engines as they are, with their own threads.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "broker/home.hpp"
#include "home_driver.hpp"
#include "store/open.hpp"
#include "tests/support/temp_dir.hpp"

namespace stoat::broker {
namespace {

constexpr QueueId kQueue{1};
constexpr ConnectionId kPublisher{10};
constexpr ConnectionId kReader{20};
constexpr ChannelRef kChannel{ChannelNumber(1), ChannelIncarnation(1)};
constexpr auto kPatience = std::chrono::seconds(60);

// One worker's loop, run by the test.
class Loop {
 public:
  explicit Loop(std::unique_ptr<store::Store> store_in) : store(std::move(store_in)) {
    const store::Recovered found = store->recover();
    HomeLimits limits;
    limits.max_queue_window_bytes = 64 << 10;
    limits.min_queue_window_bytes = 16 << 10;
    limits.read_bytes = 16 << 10;
    Home::Hooks hooks;
    hooks.post = [this](std::function<void()> work) {
      std::lock_guard lock(mutex_);
      posted_.push_back(std::move(work));
      wake_.notify_one();
    };
    hooks.deliver = [this](ConnectionId to, WorkerIndex, ToConnection& batch) {
      for (const Confirm& c : batch.confirms) confirmed += c.last.value - c.first.value + 1;
      for (Delivery& d : batch.deliveries) deliveries.push_back(std::move(d));
      EXPECT_TRUE(to == kReader || batch.deliveries.empty());
    };
    hooks.unused = [](QueueId) {};
    home = std::make_unique<Home>(WorkerIndex(0), *store, clock_, std::move(hooks), limits);
    QueueSpec spec;
    spec.id = kQueue;
    spec.durable = true;
    const bool known = !found.streams.empty();
    home->create_queue(spec, known ? &found.streams.front() : nullptr, found.clean);
  }

  // Runs turns until `done`; false when that takes too long.
  template <class Done>
  bool run_until(Done done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    home->end_turn();
    while (!done()) {
      std::vector<std::function<void()>> work;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait_until(lock, end, [&] { return !posted_.empty(); })) return false;
        work.swap(posted_);
      }
      for (const auto& one : work) one();
      home->end_turn();
    }
    return true;
  }

  // A clean stop.
  void stop() {
    bool drained = false;
    home->drain([&] { drained = true; });
    EXPECT_TRUE(run_until([&] { return drained; }));
    const auto exact = home->exact_numbers();
    home.reset();
    store->close(exact);
    store.reset();
  }

  std::unique_ptr<store::Store> store;
  std::unique_ptr<Home> home;
  std::vector<Delivery> deliveries;
  std::uint64_t confirmed = 0;

 private:
  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> posted_;
};

class HomeStoreFixture : public ::testing::Test {
 protected:
  std::unique_ptr<store::Store> open_rocks() {
    store::RocksOptions options;
    options.data_dir = folder.path() / "data";
    options.on_failure = [](const store::StoreError& error) { ADD_FAILURE() << error.text; };
    return store::open_rocks_store(std::move(options));
  }

  static std::string body(int number) {
    return std::to_string(number) + std::string(static_cast<std::size_t>(number % 700), 'x');
  }
  static int number_of(const Delivery& delivery) {
    return std::stoi(std::string(delivery.message->body()));
  }

  void publish(Loop& loop, int first, int last) {
    ToHome batch;
    for (int i = first; i <= last; ++i) {
      const bool persistent = i % 5 != 0;
      batch.publishes.push_back({kQueue, testing::make_message(body(i), persistent), kChannel,
                                 PublishTag(static_cast<std::uint64_t>(i))});
      if (batch.publishes.size() < 100 && i != last) continue;
      loop.home->take(kPublisher, WorkerIndex(0), batch);
      loop.home->end_turn();
    }
  }
  void consume(Loop& loop, std::uint16_t prefetch) {
    ConsumerSpec spec;
    spec.connection = kReader;
    spec.channel = kChannel;
    spec.id = ConsumerId(1);
    spec.prefetch = prefetch;
    ASSERT_EQ(loop.home->consume(kQueue, spec), ConsumeResult::ok);
  }
  // Settles what was delivered, and credits its bytes.
  template <class KindOf>
  void settle(Loop& loop, KindOf kind_of) {
    ToHome batch;
    for (const Delivery& d : std::exchange(loop.deliveries, {})) {
      batch.written_bytes += d.message->stored().size();
      const Sequence at = d.position.sequence;
      batch.settles.push_back({kQueue, 0, kind_of(d), at, at});
    }
    loop.home->take(kReader, WorkerIndex(0), batch);
    loop.home->end_turn();
  }

  test::TempDir folder;
};

class HomeStoreTest : public HomeStoreFixture, public ::testing::WithParamInterface<bool> {};

// Far more than the windows hold, some requeued once: all arrive, in order, whole.
TEST_P(HomeStoreTest, LongQueueArrivesWholeAndInOrder) {
  constexpr int kMessages = 5000;
  Loop loop(GetParam() ? open_rocks() : store::make_memory_store());
  publish(loop, 1, kMessages);
  ASSERT_TRUE(loop.run_until([&] { return loop.confirmed == kMessages; }));
  EXPECT_LE(loop.home->queue_stats(kQueue)->memory_bytes, 100u << 10);
  consume(loop, 50);
  std::set<int> requeued;
  int last_new = 0;
  int settled = 0;
  while (settled < kMessages) {
    ASSERT_TRUE(loop.run_until([&] { return !loop.deliveries.empty(); }));
    settle(loop, [&](const Delivery& d) {
      const int number = number_of(d);
      EXPECT_EQ(d.message->body(), body(number));
      EXPECT_EQ(d.redelivered, requeued.contains(number));
      EXPECT_TRUE(d.redelivered || number == ++last_new) << number;
      if (number % 9 == 0 && requeued.insert(number).second) return SettleKind::requeue;
      ++settled;
      return SettleKind::ack;
    });
  }
  EXPECT_EQ(loop.home->counts(kQueue).ready + loop.home->counts(kQueue).unacked, 0u);
  EXPECT_LE(loop.home->queue_stats(kQueue)->memory_bytes, 100u << 10);
  loop.stop();
}

TEST_F(HomeStoreFixture, CleanStopKeepsExactlyWhatIsLeft) {
  constexpr int kMessages = 3000;
  constexpr int kTaken = 1000;
  {
    Loop loop(open_rocks());
    publish(loop, 1, kMessages);
    ASSERT_TRUE(loop.run_until([&] { return loop.confirmed == kMessages; }));
    consume(loop, 100);
    int taken = 0;
    while (taken < kTaken) {
      ASSERT_TRUE(loop.run_until([&] { return !loop.deliveries.empty(); }));
      settle(loop, [&](const Delivery& d) {
        ++taken;
        return number_of(d) % 4 == 0 ? SettleKind::reject : SettleKind::ack;
      });
    }
    loop.run_until([&] { return loop.deliveries.size() >= 100; });
    loop.home->cancel(kQueue, kReader, ConsumerId(1));
    loop.stop();
  }
  Loop loop(open_rocks());
  const auto ready = loop.home->counts(kQueue).ready;
  consume(loop, 0);
  int last = 0;
  std::uint64_t got = 0;
  while (got < ready) {
    ASSERT_TRUE(loop.run_until([&] { return !loop.deliveries.empty(); }));
    settle(loop, [&](const Delivery& d) {
      const int number = number_of(d);
      EXPECT_NE(number % 5, 0) << "a transient message came back";
      EXPECT_GT(number, std::max(last, kTaken - 1));
      last = number;
      ++got;
      return SettleKind::ack;
    });
  }
  EXPECT_EQ(last, kMessages - 1);  // the last one was transient
  loop.stop();
}

INSTANTIATE_TEST_SUITE_P(Engines, HomeStoreTest, ::testing::Bool(),
                         [](const auto& rocks) { return rocks.param ? "RocksDB" : "Memory"; });

}  // namespace
}  // namespace stoat::broker
