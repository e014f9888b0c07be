// Random declares, deletes, binds, unbinds and publishes against a model that keeps one flat list
// of bindings and reads all of it for everything.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "routing/route_scratch.hpp"
#include "routing/routing_table.hpp"
#include "tests/routing/topic_reference.hpp"
#include "tests/support/seed.hpp"
#include "wire/properties.hpp"

namespace stoat::routing {
namespace {

using wire::Table;

bool headers_match(const Table& arguments, const Table& headers) {
  const wire::FieldValue* x_match = arguments.find("x-match");
  const std::string mode = x_match == nullptr ? "all" : *x_match->as_string();
  const bool any = mode.starts_with("any");
  bool every = true;
  bool some = false;
  for (const auto& [key, value] : arguments.entries()) {
    if (key == "x-match" || (key.starts_with("x-") && !mode.ends_with("-with-x"))) continue;
    const wire::FieldValue* header = headers.find(key);
    const bool present_is_enough = value.type_octet() == 'V';
    const bool equal = header != nullptr && (present_is_enough || wire::equivalent(value, *header));
    every = every && equal;
    some = some || equal;
  }
  return any ? some : every;
}

struct Model {
  struct Binding {
    std::string source;
    std::string exchange;  // destination when queue is 0
    std::uint64_t queue;
    std::string key;
    Table arguments;

    bool equals(const Binding& b) const {
      return source == b.source && exchange == b.exchange && queue == b.queue && key == b.key &&
             wire::equivalent(arguments, b.arguments);
    }
  };
  std::map<std::string, ExchangeSpec> exchanges;
  std::map<std::uint64_t, std::string> queues;
  std::vector<Binding> bindings;

  bool in_use(const std::string& exchange) const {
    return std::any_of(bindings.begin(), bindings.end(),
                       [&](const Binding& b) { return b.source == exchange; });
  }
  bool bind(const Binding& binding) {
    for (const Binding& b : bindings) {
      if (b.equals(binding)) return false;
    }
    bindings.push_back(binding);
    return true;
  }
  bool unbind(const Binding& binding) {
    return std::erase_if(bindings, [&](const Binding& b) { return b.equals(binding); }) > 0;
  }
  // Removes the bindings that `gone` holds for; the sources that are left without any.
  template <class Gone>
  std::set<std::string> drop(Gone gone) {
    std::set<std::string> sources;
    for (const Binding& b : bindings) {
      if (gone(b)) sources.insert(b.source);
    }
    std::erase_if(bindings, gone);
    std::erase_if(sources, [&](const std::string& source) { return in_use(source); });
    return sources;
  }

  bool matches(const Binding& b, const std::vector<std::string_view>& keys,
               const Table& headers) const {
    const ExchangeType type = exchanges.at(b.source).type;
    if (type == ExchangeType::fanout) return true;
    if (type == ExchangeType::headers) return headers_match(b.arguments, headers);
    return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
      return type == ExchangeType::direct ? key == b.key : testing::topic_matches(b.key, key);
    });
  }
  std::set<std::uint64_t> route(const std::string& exchange,
                                const std::vector<std::string_view>& keys,
                                const Table& headers) const {
    std::set<std::uint64_t> reached;
    std::set<std::string> seen{exchange};
    std::vector<std::string> pending{exchange};
    const auto visit = [&](const std::string& name) {
      if (seen.insert(name).second) pending.push_back(name);
    };
    while (!pending.empty()) {
      const std::string source = pending.back();
      pending.pop_back();
      bool matched = false;
      for (const Binding& b : bindings) {
        if (b.source != source || !matches(b, keys, headers)) continue;
        matched = true;
        if (b.queue != 0)
          reached.insert(b.queue);
        else
          visit(b.exchange);
      }
      const std::string& alternate = exchanges.at(source).alternate_exchange;
      if (!matched && exchanges.contains(alternate)) visit(alternate);
    }
    return reached;
  }
};

class RoutingModelTest : public ::testing::Test {
 protected:
  static constexpr int kExchanges = 8;
  static constexpr int kQueues = 10;

  std::size_t below(std::size_t bound) { return random_() % bound; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  std::string exchange_name() { return "x" + std::to_string(below(kExchanges)); }
  // nullptr when no such exchange exists now.
  const ExchangeSpec* existing_exchange() {
    const auto at = model_.exchanges.find(exchange_name());
    return at == model_.exchanges.end() ? nullptr : &at->second;
  }
  std::uint64_t existing_queue() {
    if (model_.queues.empty()) return 0;
    return std::next(model_.queues.begin(), below(model_.queues.size()))->first;
  }
  std::string key() {
    std::string key;
    for (std::size_t words = below(4), i = 0; i < words; ++i) {
      if (i > 0) key += '.';
      key += pick<std::string>({"a", "b", "*", "#"});
    }
    return key;
  }
  wire::FieldValue value() {
    return pick<wire::FieldValue>({std::int8_t{1}, std::int64_t{1}, 2, "1", wire::Void{}, true,
                                   Table{{"k", 1}}, wire::Array{1}});
  }
  Table headers() {
    Table table;
    for (const char* name : {"a", "b", "x-c"}) {
      if (below(2) == 0) table.set(name, value());
    }
    return table;
  }
  Table arguments() {
    if (below(3) == 0) return {};
    Table table = headers();
    if (below(2) == 0) {
      table.set("x-match", pick<std::string>({"all", "any", "all-with-x", "any-with-x"}));
    }
    return table;
  }

  void declare_exchange() {
    const std::string name = exchange_name();
    if (model_.exchanges.contains(name)) return;
    const ExchangeSpec spec{name,
                            pick<ExchangeType>({ExchangeType::direct, ExchangeType::fanout,
                                                ExchangeType::topic, ExchangeType::headers}),
                            below(2) == 0 ? exchange_name() : ""};
    table_.add_exchange(spec);
    model_.exchanges[name] = spec;
  }
  void delete_exchange() {
    const std::string name = exchange_name();
    std::vector<std::string> unused;
    ASSERT_EQ(table_.remove_exchange(name, &unused), model_.exchanges.contains(name));
    auto expected = model_.drop([&](const Model::Binding& b) {
      return b.source == name || (b.queue == 0 && b.exchange == name);
    });
    expected.erase(name);
    model_.exchanges.erase(name);
    expect_names(unused, expected);
  }
  void declare_queue() {
    if (model_.queues.size() == kQueues) return;
    const std::uint64_t id = ++last_queue_;
    model_.queues[id] = "q" + std::to_string(id);
    table_.add_queue(model_.queues[id], QueueId(id));
  }
  void delete_queue() {
    const std::uint64_t id = existing_queue();
    if (id == 0) return;
    std::vector<std::string> unused;
    table_.remove_queue(model_.queues[id], QueueId(id), &unused);
    model_.queues.erase(id);
    expect_names(unused, model_.drop([&](const Model::Binding& b) { return b.queue == id; }));
  }
  // Binds, or unbinds what is as likely as not to be there.
  void change_binding() {
    const bool unbind = below(3) == 0;
    Model::Binding b;
    if (unbind && !model_.bindings.empty() && below(4) != 0) {
      b = pick(model_.bindings);
    } else {
      const ExchangeSpec* source = existing_exchange();
      const ExchangeSpec* destination = existing_exchange();
      const bool to_queue = below(3) != 0;
      const std::uint64_t queue = to_queue ? existing_queue() : 0;
      if (source == nullptr || (to_queue ? queue == 0 : destination == nullptr)) return;
      b = {source->name, to_queue ? "" : destination->name, queue, key(), arguments()};
    }
    const QueueId id(b.queue);
    bool done;
    if (b.queue != 0) {
      done = unbind ? table_.unbind_queue(b.source, id, b.key, b.arguments)
                    : table_.bind_queue(b.source, id, b.key, b.arguments);
    } else {
      done = unbind ? table_.unbind_exchange(b.source, b.exchange, b.key, b.arguments)
                    : table_.bind_exchange(b.source, b.exchange, b.key, b.arguments);
    }
    ASSERT_EQ(done, unbind ? model_.unbind(b) : model_.bind(b));
    ASSERT_EQ(table_.is_source_in_use(b.source), model_.in_use(b.source));
  }
  void publish() {
    const std::string name = exchange_name();
    const Exchange* exchange = table_.find(name);
    ASSERT_EQ(exchange != nullptr, model_.exchanges.contains(name));
    if (exchange == nullptr) return;
    std::vector<std::string> keys;
    for (std::size_t count = 1 + below(3), i = 0; i < count; ++i) keys.push_back(key());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    wire::Properties properties;
    properties.headers = headers();
    const std::string raw = properties.encode();
    const wire::PropertiesView view(raw);
    const auto reached =
        table_.route(*exchange, {views[0], &view}, std::span(views).subspan(1), scratch_);
    std::vector<std::uint64_t> ids;
    for (const QueueId id : reached) ids.push_back(id.value);
    std::sort(ids.begin(), ids.end());
    const auto expected = model_.route(name, views, *properties.headers);
    ASSERT_EQ(ids, std::vector(expected.begin(), expected.end()))
        << name << " keys " << ::testing::PrintToString(keys);
    (ids.empty() ? unroutable_ : routed_) += 1;
  }

  static void expect_names(std::vector<std::string> names, const std::set<std::string>& expected) {
    std::sort(names.begin(), names.end());
    ASSERT_EQ(names, std::vector(expected.begin(), expected.end()));
  }

  std::uint64_t seed_ = stoat::testing::test_seed();
  std::mt19937_64 random_{seed_};
  RoutingTable table_;
  RouteScratch scratch_;
  Model model_;
  std::uint64_t last_queue_ = 0;
  int routed_ = 0;
  int unroutable_ = 0;
};

TEST_F(RoutingModelTest, TableAndModelAgree) {
  SCOPED_TRACE(stoat::testing::seed_text(seed_));
  constexpr int kOperations = 30000;
  for (int i = 0; i < kOperations && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    const std::size_t what = below(100);
    if (what < 4)
      declare_exchange();
    else if (what < 5)
      delete_exchange();
    else if (what < 8)
      declare_queue();
    else if (what < 10)
      delete_queue();
    else if (what < 50)
      change_binding();
    else
      publish();
  }
  // The run is worth something only if all kinds of outcome were common.
  EXPECT_GT(routed_, kOperations / 20);
  EXPECT_GT(unroutable_, kOperations / 20);
  EXPECT_GT(last_queue_, 100u);
}

}  // namespace
}  // namespace stoat::routing
