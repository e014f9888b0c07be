#include "routing/routing_table.hpp"

#include "base/assert.hpp"
#include "routing/exchange.hpp"
#include "routing/route_scratch.hpp"
#include "routing/string_map.hpp"

namespace stoat::routing {

namespace {

// Drops the bindings that lead to a destination about to go.
void remove_incoming(Destination& destination, std::vector<std::string>* unused) {
  while (!destination.incoming.empty()) {
    Binding& binding = *destination.incoming.back();
    Exchange& source = binding.source;
    source.unbind(binding);
    if (unused != nullptr && !source.in_use()) unused->push_back(source.name());
  }
}

}  // namespace

bool parse_exchange_type(std::string_view name, ExchangeType& type) {
  for (const ExchangeType candidate :
       {ExchangeType::direct, ExchangeType::fanout, ExchangeType::topic, ExchangeType::headers}) {
    if (name != name_of(candidate)) continue;
    type = candidate;
    return true;
  }
  return false;
}

std::string_view name_of(ExchangeType type) {
  switch (type) {
    case ExchangeType::direct:
      return "direct";
    case ExchangeType::fanout:
      return "fanout";
    case ExchangeType::topic:
      return "topic";
    case ExchangeType::headers:
      return "headers";
  }
  return {};
}

struct RoutingTable::State {
  StringMap<std::unique_ptr<Exchange>> exchanges;
  boost::unordered_flat_map<QueueId, std::unique_ptr<Destination>, std::hash<QueueId>> queues;
  Exchange* default_exchange = nullptr;
  // Numbers of destinations: dense, so that RouteScratch can mark by them.
  std::uint32_t next_number = 0;
  std::vector<std::uint32_t> free_numbers;

  std::uint32_t take_number() {
    if (free_numbers.empty()) return next_number++;
    const std::uint32_t number = free_numbers.back();
    free_numbers.pop_back();
    return number;
  }
  Exchange* find(std::string_view name) const {
    const auto at = exchanges.find(name);
    return at == exchanges.end() ? nullptr : at->second.get();
  }
  Exchange& exchange(std::string_view name) const {
    Exchange* found = find(name);
    STOAT_ASSERT(found != nullptr, name);
    return *found;
  }
  Destination& queue(QueueId id) const {
    const auto at = queues.find(id);
    STOAT_ASSERT(at != queues.end(), id);
    return *at->second;
  }
};

RoutingTable::RoutingTable() : state_(std::make_unique<State>()) {
  add_exchange({.name = "", .type = ExchangeType::direct, .alternate_exchange = ""});
  state_->default_exchange = state_->find("");
}

RoutingTable::~RoutingTable() = default;

void RoutingTable::add_exchange(const ExchangeSpec& spec) {
  STOAT_ASSERT(!has_exchange(spec.name), spec.name);
  state_->exchanges.emplace(spec.name, Exchange::create(spec, state_->take_number()));
  ++generation_;
}

bool RoutingTable::remove_exchange(std::string_view name, std::vector<std::string>* unused) {
  const auto at = state_->exchanges.find(name);
  if (at == state_->exchanges.end()) return false;
  Exchange& exchange = *at->second;
  STOAT_ASSERT(&exchange != state_->default_exchange);
  exchange.retire();  // first, so that a binding to itself does not report it as unused
  remove_incoming(exchange.as_destination(), unused);
  state_->free_numbers.push_back(exchange.as_destination().target.number);
  state_->exchanges.erase(at);
  ++generation_;
  return true;
}

bool RoutingTable::has_exchange(std::string_view name) const {
  return state_->find(name) != nullptr;
}

bool RoutingTable::is_source_in_use(std::string_view exchange) const {
  const Exchange* found = state_->find(exchange);
  return found != nullptr && found->in_use();
}

void RoutingTable::add_queue(std::string_view name, QueueId id) {
  auto queue = std::make_unique<Destination>();
  queue->target = {.exchange = nullptr, .queue = id, .number = state_->take_number()};
  const auto [at, added] = state_->queues.emplace(id, std::move(queue));
  STOAT_ASSERT(added, name, id);
  state_->default_exchange->bind(*at->second, name, {});
  ++generation_;
}

void RoutingTable::remove_queue(std::string_view name, QueueId id,
                                std::vector<std::string>* unused) {
  const auto at = state_->queues.find(id);
  if (at == state_->queues.end()) return;
  Destination& queue = *at->second;
  const bool unbound = state_->default_exchange->unbind(queue, name, {});
  STOAT_ASSERT(unbound, name, id);
  remove_incoming(queue, unused);
  state_->free_numbers.push_back(queue.target.number);
  state_->queues.erase(at);
  ++generation_;
}

bool RoutingTable::bind_queue(std::string_view source, QueueId destination,
                              std::string_view binding_key, const wire::Table& arguments) {
  const bool bound =
      state_->exchange(source).bind(state_->queue(destination), binding_key, arguments);
  generation_ += bound;
  return bound;
}

bool RoutingTable::unbind_queue(std::string_view source, QueueId destination,
                                std::string_view binding_key, const wire::Table& arguments) {
  Exchange* from = state_->find(source);
  const auto to = state_->queues.find(destination);
  if (from == nullptr || to == state_->queues.end()) return false;
  const bool unbound = from->unbind(*to->second, binding_key, arguments);
  generation_ += unbound;
  return unbound;
}

bool RoutingTable::bind_exchange(std::string_view source, std::string_view destination,
                                 std::string_view binding_key, const wire::Table& arguments) {
  Destination& to = state_->exchange(destination).as_destination();
  const bool bound = state_->exchange(source).bind(to, binding_key, arguments);
  generation_ += bound;
  return bound;
}

bool RoutingTable::unbind_exchange(std::string_view source, std::string_view destination,
                                   std::string_view binding_key, const wire::Table& arguments) {
  Exchange* from = state_->find(source);
  const Exchange* to = state_->find(destination);
  if (from == nullptr || to == nullptr) return false;
  const bool unbound = from->unbind(to->as_destination(), binding_key, arguments);
  generation_ += unbound;
  return unbound;
}

const Exchange* RoutingTable::find(std::string_view exchange) const {
  return state_->find(exchange);
}

std::span<const QueueId> RoutingTable::route(const Exchange& exchange, const Routable& message,
                                             std::span<const std::string_view> extra_keys,
                                             RouteScratch& scratch) const {
  scratch.begin(message, extra_keys, state_->next_number);
  scratch.reach(exchange.as_destination().target);
  while (const Exchange* reached = scratch.next_exchange()) {
    const std::uint64_t matches_before = scratch.matches();
    reached->match(scratch);
    if (scratch.matches() != matches_before || reached->alternate_exchange().empty()) continue;
    if (const Exchange* alternate = state_->find(reached->alternate_exchange())) {
      scratch.reach(alternate->as_destination().target);
    }
  }
  return scratch.queues();
}

}  // namespace stoat::routing
