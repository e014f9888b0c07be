// What a message costs at its home: taken from a publisher, put, dispatched, handed to the
// consumer's connection, acknowledged. No sockets; the store is the one in memory, on its own
// thread as any.

#include <benchmark/benchmark.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "broker/home.hpp"
#include "store/open.hpp"

namespace stoat::broker {
namespace {

constexpr QueueId kQueue{1};
constexpr ConnectionId kPublisher{1};
constexpr ConnectionId kConsumer{2};
constexpr ChannelRef kChannel{ChannelNumber(1), ChannelIncarnation(1)};

MessagePtr make_message(std::size_t bytes, bool persistent) {
  const std::string body(bytes, 'x');
  MessageBuilder builder;
  builder.start("orders", "created", "", persistent, WallTime{}, body.size(), body.size());
  builder.append(body);
  return builder.finish();
}

// The worker's loop: reads of `batch` messages, and what the store posted.
class Loop {
 public:
  explicit Loop(bool no_ack) : store_(store::make_memory_store()), no_ack_(no_ack) {
    store_->recover();
    Home::Hooks hooks;
    hooks.post = [this](std::function<void()> work) {
      std::lock_guard lock(mutex_);
      posted_.push_back(std::move(work));
      wake_.notify_one();
    };
    hooks.deliver = [this](ConnectionId to, WorkerIndex, ToConnection& batch) {
      if (to == kConsumer) take(batch);
      for (const Confirm& c : batch.confirms) confirmed_ += c.last.value - c.first.value + 1;
    };
    hooks.unused = [](QueueId) {};
    home_ = std::make_unique<Home>(WorkerIndex(0), *store_, clock_, std::move(hooks));
    QueueSpec queue;
    queue.id = kQueue;
    queue.durable = true;
    home_->create_queue(std::move(queue), nullptr, true);
  }
  ~Loop() {
    home_.reset();
    store_->close({});
  }

  // From here on the store seems to take that many turns for each batch.
  void set_turns_per_completion(int turns) { turns_per_completion_ = turns; }

  void consume() {
    ConsumerSpec spec;
    spec.connection = kConsumer;
    spec.channel = kChannel;
    spec.id = ConsumerId(1);
    spec.no_ack = no_ack_;
    home_->consume(kQueue, std::move(spec));
    turn();
  }

  void publish(std::size_t count, std::size_t bytes, bool persistent) {
    for (std::size_t i = 0; i < count; ++i) {
      from_publisher_.publishes.push_back(
          {kQueue, make_message(bytes, persistent), kChannel, PublishTag(++published_)});
    }
    home_->take(kPublisher, WorkerIndex(0), from_publisher_);
    turn();
  }

  // One turn of the worker: what the consumer acknowledged, what the store has done.
  void turn() {
    if (++turns_ % turns_per_completion_ == 0) {
      std::lock_guard lock(mutex_);
      running_.swap(posted_);
    }
    for (const auto& work : running_) work();
    running_.clear();
    home_->end_turn();
    if (from_consumer_.empty()) return;
    home_->take(kConsumer, WorkerIndex(0), from_consumer_);
    home_->end_turn();
  }

  void finish() {
    while (delivered_ < published_ || confirmed_ < published_) {
      turn();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !posted_.empty() || !from_consumer_.empty(); });
    }
  }

  std::uint64_t published() const { return published_; }
  HomeStats stats() const { return home_->stats(); }

 private:
  void take(ToConnection& batch) {
    for (const Delivery& delivery : batch.deliveries) {
      ++delivered_;
      from_consumer_.written_bytes += delivery.message->stored().size();
      const Sequence at = delivery.position.sequence;
      auto& settles = from_consumer_.settles;
      if (!settles.empty() && settles.back().last.next() == at) {
        settles.back().last = at;
      } else {
        settles.push_back({kQueue, 0, no_ack_ ? SettleKind::sent : SettleKind::ack, at, at});
      }
    }
  }

  SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  const bool no_ack_;
  int turns_per_completion_ = 1;
  int turns_ = 0;
  std::unique_ptr<Home> home_;
  ToHome from_publisher_;
  ToHome from_consumer_;
  std::uint64_t published_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t confirmed_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> posted_;
  std::vector<std::function<void()>> running_;
};

// Arguments: bytes of the body, persistent, messages per read, and reads while the store writes one
// batch: a disk's sync takes several, and what is acknowledged meanwhile is never written.
void BM_PublishDeliverAck(benchmark::State& state) {
  Loop loop(false);
  loop.consume();
  // The steps in which the delivered ceiling is persisted ahead have grown after that many.
  for (int i = 0; i < 2'000; ++i) loop.publish(100, 1, true);
  loop.finish();
  const HomeStats before = loop.stats();
  loop.set_turns_per_completion(static_cast<int>(state.range(3)));
  const auto batch = static_cast<std::size_t>(state.range(2));
  for (auto _ : state) {
    loop.publish(batch, static_cast<std::size_t>(state.range(0)), state.range(1) != 0);
  }
  loop.finish();
  const HomeStats stats = loop.stats();
  const std::uint64_t messages = stats.published - before.published;
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  state.counters["written"] =
      static_cast<double>(stats.puts_written - before.puts_written) / static_cast<double>(messages);
}
BENCHMARK(BM_PublishDeliverAck)
    ->ArgNames({"bytes", "persistent", "batch", "reads"})
    ->Args({100, 0, 200, 1})
    ->Args({1024, 0, 200, 1})
    ->Args({1024, 1, 200, 1})
    ->Args({1024, 1, 200, 10})
    ->Args({1024, 1, 10, 10})
    ->Args({1024, 1, 1, 10});

void BM_PublishDeliverNoAck(benchmark::State& state) {
  Loop loop(true);
  loop.consume();
  for (auto _ : state) loop.publish(200, 100, false);
  loop.finish();
  state.SetItemsProcessed(static_cast<std::int64_t>(loop.published()));
}
BENCHMARK(BM_PublishDeliverNoAck);

// The message's own cost, contained in all of the above.
void BM_MakeMessage(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_message(static_cast<std::size_t>(state.range(0)), true));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_MakeMessage)->Arg(100)->Arg(1024);

}  // namespace
}  // namespace stoat::broker

BENCHMARK_MAIN();
