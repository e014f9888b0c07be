// What routing one message costs, by exchange type and number of bindings. Keys come in an order
// that the caches cannot learn, as they do from many producers.

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "routing/route_scratch.hpp"
#include "routing/routing_table.hpp"
#include "wire/properties.hpp"

namespace stoat::routing {
namespace {

constexpr std::size_t kKeys = 1 << 12;  // a power of two

// One exchange, and the keys to publish to it.
class Setup {
 public:
  explicit Setup(ExchangeType type) {
    table_.add_exchange({.name = "x", .type = type, .alternate_exchange = ""});
  }
  // A queue of its own for each binding.
  void bind(const std::string& key, const wire::Table& arguments = {}) {
    const QueueId id(++last_queue_);
    table_.add_queue("q" + std::to_string(id.value), id);
    table_.bind_queue("x", id, key, arguments);
  }
  // make(n) for random n below `bound`.
  template <class Make>
  void make_keys(std::size_t bound, Make make) {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kKeys; ++i) keys_.push_back(make(random() % bound));
  }
  void run(benchmark::State& state, const wire::PropertiesView* properties = nullptr) {
    const Exchange& exchange = *table_.find("x");
    RouteScratch scratch;
    std::size_t next = 0;
    std::size_t reached = 0;
    for (auto _ : state) {
      reached += table_.route(exchange, {keys_[next], properties}, {}, scratch).size();
      next = (next + 1) & (kKeys - 1);
    }
    const auto messages = static_cast<std::int64_t>(state.iterations());
    state.SetItemsProcessed(messages);
    state.counters["queues"] = static_cast<double>(reached) / static_cast<double>(messages);
  }

 private:
  RoutingTable table_;
  std::vector<std::string> keys_;
  std::uint64_t last_queue_ = 0;
};

void topic(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  Setup setup(ExchangeType::topic);
  for (std::size_t i = 0; i < bindings; ++i) setup.bind("load.*." + std::to_string(i) + ".#");
  setup.make_keys(bindings, [](std::size_t n) {
    return "load.k" + std::to_string(n % 8) + "." + std::to_string(n) + ".x.y";
  });
  setup.run(state);
}
BENCHMARK(topic)->Arg(2'000)->Arg(100'000);

// Bindings that part at every word, half of them with wildcards.
void topic_branching(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  const auto key = [](std::size_t n) {
    return std::vector<std::string>{"region" + std::to_string(n % 7),
                                    "service" + std::to_string(n / 7 % 30),
                                    "host" + std::to_string(n / 210), "event"};
  };
  const auto joined = [](const std::vector<std::string>& w) {
    return w[0] + "." + w[1] + "." + w[2] + "." + w[3];
  };
  Setup setup(ExchangeType::topic);
  for (std::size_t i = 0; i < bindings; ++i) {
    std::vector<std::string> words = key(i);
    if (i % 4 == 0) words[3] = "#";
    if (i % 4 == 1) words[1] = "*";
    setup.bind(joined(words));
  }
  setup.make_keys(bindings, [&](std::size_t n) { return joined(key(n)); });
  setup.run(state);
}
BENCHMARK(topic_branching)->Arg(2'000)->Arg(100'000);

void direct(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  Setup setup(ExchangeType::direct);
  const auto key = [](std::size_t n) { return "orders.created." + std::to_string(n); };
  for (std::size_t i = 0; i < bindings; ++i) setup.bind(key(i));
  setup.make_keys(bindings, key);
  setup.run(state);
}
BENCHMARK(direct)->Arg(10)->Arg(100'000);

void fanout(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  Setup setup(ExchangeType::fanout);
  for (std::size_t i = 0; i < bindings; ++i) setup.bind("");
  setup.make_keys(1, [](std::size_t) { return std::string("any"); });
  setup.run(state);
}
BENCHMARK(fanout)->Arg(10)->Arg(1'000);

void headers(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  Setup setup(ExchangeType::headers);
  for (std::size_t i = 0; i < bindings; ++i) {
    setup.bind("", {{"x-match", i % 2 == 0 ? "all" : "any"},
                    {"customer", "c" + std::to_string(i)},
                    {"kind", "invoice"}});
  }
  wire::Properties properties;
  properties.headers = {{"customer", "c42"}, {"kind", "order"}, {"size", 17}, {"urgent", true}};
  const std::string raw = properties.encode();
  const wire::PropertiesView view(raw);
  setup.make_keys(1, [](std::size_t) { return std::string("any"); });
  setup.run(state, &view);
}
BENCHMARK(headers)->Arg(100);

}  // namespace
}  // namespace stoat::routing

BENCHMARK_MAIN();
