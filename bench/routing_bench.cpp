// What routing one message costs, by exchange type and number of bindings. Keys come in an order
// that the caches cannot learn, as they do from many producers.

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "routing/route_scratch.hpp"
#include "routing/routing_table.hpp"
#include "wire/properties.hpp"

namespace stoat::routing {
namespace {

constexpr std::size_t kKeys = 1 << 12;  // a power of two

// One exchange, and the keys to publish to it. Built once for each benchmark and size: the library
// calls a benchmark several times to find how often to repeat it.
class Setup {
 public:
  explicit Setup(ExchangeType type) {
    table_.add_exchange({.name = "x", .type = type, .alternate_exchange = ""});
  }
  template <class Fill>
  static Setup& once(const char* benchmark, std::size_t bindings, ExchangeType type, Fill fill) {
    static std::map<std::pair<std::string, std::size_t>, std::unique_ptr<Setup>> built;
    std::unique_ptr<Setup>& setup = built[{benchmark, bindings}];
    if (setup == nullptr) {
      setup = std::make_unique<Setup>(type);
      fill(*setup);
    }
    return *setup;
  }
  // A queue of its own for each binding.
  void bind(const std::string& key, const wire::Table& arguments = {}) {
    const QueueId id(++last_queue_);
    table_.add_queue("q" + std::to_string(id.value), id);
    table_.bind_queue("x", id, key, arguments);
  }
  void remove_last() {
    table_.remove_queue("q" + std::to_string(last_queue_), QueueId(last_queue_));
    --last_queue_;
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
  const auto fill = [&](Setup& setup) {
    for (std::size_t i = 0; i < bindings; ++i) setup.bind("load.*." + std::to_string(i) + ".#");
    setup.make_keys(bindings, [](std::size_t n) {
      return "load.k" + std::to_string(n % 8) + "." + std::to_string(n) + ".x.y";
    });
  };
  Setup::once("topic", bindings, ExchangeType::topic, fill).run(state);
}
BENCHMARK(topic)->ArgName("bindings")->Arg(2'000)->Arg(100'000);

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
  const auto fill = [&](Setup& setup) {
    for (std::size_t i = 0; i < bindings; ++i) {
      std::vector<std::string> words = key(i);
      if (i % 4 == 0) words[3] = "#";
      if (i % 4 == 1) words[1] = "*";
      setup.bind(joined(words));
    }
    setup.make_keys(bindings, [&](std::size_t n) { return joined(key(n)); });
  };
  Setup::once("topic_branching", bindings, ExchangeType::topic, fill).run(state);
}
BENCHMARK(topic_branching)->ArgName("bindings")->Arg(2'000)->Arg(100'000);

void direct(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  const auto key = [](std::size_t n) { return "orders.created." + std::to_string(n); };
  const auto fill = [&](Setup& setup) {
    for (std::size_t i = 0; i < bindings; ++i) setup.bind(key(i));
    setup.make_keys(bindings, key);
  };
  Setup::once("direct", bindings, ExchangeType::direct, fill).run(state);
}
BENCHMARK(direct)->ArgName("bindings")->Arg(10)->Arg(100'000);

void fanout(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  const auto fill = [&](Setup& setup) {
    for (std::size_t i = 0; i < bindings; ++i) setup.bind("");
    setup.make_keys(1, [](std::size_t) { return std::string("any"); });
  };
  Setup::once("fanout", bindings, ExchangeType::fanout, fill).run(state);
}
BENCHMARK(fanout)->ArgName("bindings")->Arg(10)->Arg(1'000);

void headers(benchmark::State& state) {
  const auto bindings = static_cast<std::size_t>(state.range(0));
  const auto fill = [&](Setup& setup) {
    for (std::size_t i = 0; i < bindings; ++i) {
      setup.bind("", {{"x-match", i % 2 == 0 ? "all" : "any"},
                      {"customer", "c" + std::to_string(i)},
                      {"kind", "invoice"}});
    }
    setup.make_keys(1, [](std::size_t) { return std::string("any"); });
  };
  wire::Properties properties;
  properties.headers = {{"customer", "c42"}, {"kind", "invoice"}, {"size", 17}, {"urgent", true}};
  const std::string raw = properties.encode();
  const wire::PropertiesView view(raw);
  Setup::once("headers", bindings, ExchangeType::headers, fill).run(state, &view);
}
BENCHMARK(headers)->ArgName("bindings")->Arg(100);

// A client comes, binds a queue of its own among many others, and leaves.
void bind_and_remove(benchmark::State& state) {
  constexpr std::size_t kOthers = 10'000;
  const auto fill = [](Setup& setup) {
    for (std::size_t i = 0; i < kOthers; ++i) setup.bind("rpc.*." + std::to_string(i) + ".#");
  };
  Setup& setup = Setup::once("bind_and_remove", kOthers, ExchangeType::topic, fill);
  for (auto _ : state) {
    setup.bind("rpc.*.reply.#");
    setup.remove_last();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bind_and_remove);

}  // namespace
}  // namespace stoat::routing

BENCHMARK_MAIN();
