// What the store costs beneath the broker: committing batches of messages that stay (fill), that
// are settled soon after (short-lived), one at a time (latency), and reading a backlog back
// (drain). Bodies are 1 KiB, every batch asks for a sync. The folder lies under TMPDIR, or /tmp.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "store/open.hpp"

namespace stoat::store {
namespace {

constexpr StreamId kStream{QueueId{1}, 0};
constexpr std::size_t kBodyBytes = 1024;

// A store in a folder of its own, and a window of batches under way.
class Setup {
 public:
  Setup() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stoat-bench-XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::abort();
    dir_ = pattern;
    RocksOptions options;
    options.data_dir = dir_ / "data";
    options.on_failure = [](const StoreError&) { std::abort(); };
    store_ = open_rocks_store(std::move(options));
    store_->recover();
    TopologyChange change;
    change.created_queues.push_back(kStream.queue);
    store_->save_topology(std::move(change), {});
  }
  ~Setup() {
    store_->close({});
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  // The next `count` messages; `then` once they are safe.
  void put(std::size_t count, Store::Completion then) {
    Batch batch;
    batch.sync = true;
    for (std::size_t i = 0; i < count; ++i) {
      batch.puts.push_back({kStream, next_, body_, false});
      next_ = next_.next();
    }
    store_->submit(std::move(batch), std::move(then));
  }
  // The oldest `count` messages, once more than `waiting` are there.
  void settle_beyond(std::uint64_t waiting, std::size_t count) {
    if (next_.value - oldest_.value < waiting + count) return;
    const Sequence last{oldest_.value + count - 1};
    Batch batch;
    batch.settles.push_back({kStream, oldest_, last, count, count * kBodyBytes});
    oldest_ = last.next();
    store_->submit(std::move(batch), {});
  }

  Store& store() { return *store_; }
  Sequence next() const { return next_; }

 private:
  std::filesystem::path dir_;
  std::unique_ptr<Store> store_;
  const std::string body_ = std::string(kBodyBytes, 'b');
  Sequence next_{1};
  Sequence oldest_{1};
};

// Lets so many batches be under way.
class Window {
 public:
  explicit Window(int size) : free_(size), size_(size) {}
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void leave() {
    std::lock_guard lock(mutex_);
    ++free_;
    changed_.notify_all();
  }
  void wait_until_empty() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ == size_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  const int size_;
};

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void report(benchmark::State& state, Setup& setup, std::size_t messages) {
  const StoreStats stats = setup.store().stats();
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  state.counters["written"] = static_cast<double>(stats.puts) / static_cast<double>(messages);
  state.counters["groups"] = static_cast<double>(stats.groups);
  state.counters["rss_mb"] = resident_mb();
  state.counters["wal_mb"] = static_cast<double>(stats.wal_bytes_live) / (1 << 20);
}

void fill(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  Setup setup;
  Window window(8);
  std::size_t messages = 0;
  for (auto _ : state) {
    window.enter();
    setup.put(batch, [&](const auto&) { window.leave(); });
    messages += batch;
  }
  window.wait_until_empty();
  report(state, setup, messages);
}
BENCHMARK(fill)->Arg(20)->Arg(200)->UseRealTime();

void short_lived(benchmark::State& state) {
  constexpr std::size_t kBatch = 200;
  const auto waiting = static_cast<std::uint64_t>(state.range(0));
  Setup setup;
  Window window(8);
  std::size_t messages = 0;
  for (auto _ : state) {
    window.enter();
    setup.put(kBatch, [&](const auto&) { window.leave(); });
    setup.settle_beyond(waiting, kBatch);
    messages += kBatch;
  }
  window.wait_until_empty();
  report(state, setup, messages);
}
BENCHMARK(short_lived)->Arg(0)->Arg(2000)->Arg(20000)->UseRealTime();

void one_at_a_time(benchmark::State& state) {
  Setup setup;
  std::size_t messages = 0;
  for (auto _ : state) {
    std::promise<void> done;
    setup.put(1, [&](const auto&) { done.set_value(); });
    done.get_future().wait();
    ++messages;
  }
  report(state, setup, messages);
}
BENCHMARK(one_at_a_time)->UseRealTime();

void drain(benchmark::State& state) {
  constexpr std::size_t kBatch = 200;
  const auto backlog = static_cast<std::size_t>(state.range(0));
  Setup setup;
  Window window(8);
  for (std::size_t put = 0; put < backlog; put += kBatch) {
    window.enter();
    setup.put(kBatch, [&](const auto&) { window.leave(); });
  }
  window.wait_until_empty();
  std::size_t messages = 0;
  Sequence from{1};
  for (auto _ : state) {
    std::promise<ReadResult> done;
    setup.store().read(kStream, from, {setup.next(), 1000, 1 << 20},
                       [&](ReadResult result) { done.set_value(std::move(result)); });
    const ReadResult result = done.get_future().get();
    messages += result.messages.size();
    setup.settle_beyond(0, result.messages.size());
    from = result.resume_from;
    if (result.end) {
      state.PauseTiming();  // read through: a new backlog
      for (std::size_t put = 0; put < backlog; put += kBatch) {
        window.enter();
        setup.put(kBatch, [&](const auto&) { window.leave(); });
      }
      window.wait_until_empty();
      state.ResumeTiming();
    }
  }
  report(state, setup, messages);
}
BENCHMARK(drain)->Arg(10'000)->UseRealTime();

}  // namespace
}  // namespace stoat::store

BENCHMARK_MAIN();
