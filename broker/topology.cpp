#include "broker/topology.hpp"

#include <array>

#include "base/assert.hpp"
#include "broker/password.hpp"

namespace stoat::broker {
namespace {

// Names that a client cannot declare itself: what stands here exists in every vhost.
constexpr std::string_view kReservedPrefix = "amq.";

struct PredeclaredExchange {
  std::string_view name;
  std::string_view type;
  bool internal;
};
constexpr std::array kPredeclaredExchanges{
    PredeclaredExchange{"amq.direct", "direct", false},
    PredeclaredExchange{"amq.fanout", "fanout", false},
    PredeclaredExchange{"amq.topic", "topic", false},
    PredeclaredExchange{"amq.headers", "headers", false},
    PredeclaredExchange{"amq.match", "headers", false},
    PredeclaredExchange{"amq.rabbitmq.trace", "topic", true},
};

Topology::Name name_of(std::string_view vhost, std::string_view name) {
  return {std::string(vhost), std::string(name)};
}

std::pair<DestinationKind, Topology::Name> end_of(const BindingDef& binding) {
  return {binding.destination_kind, {binding.vhost, binding.destination}};
}

}  // namespace

bool same_binding(const BindingDef& a, const BindingDef& b) {
  return a.vhost == b.vhost && a.source == b.source && a.destination_kind == b.destination_kind &&
         a.destination == b.destination && a.routing_key == b.routing_key &&
         wire::equivalent(a.arguments, b.arguments);
}

void Topology::set_defaults() {
  add_vhost("/");
  add_user({.name = "guest",
            .password_hash = hash_password("guest"),
            .hashing_algorithm = std::string(kSha256Algorithm),
            .tags = {"administrator"}});
  add_permission({.user = "guest", .vhost = "/", .configure = ".*", .write = ".*", .read = ".*"});
}

const ExchangeDef* Topology::find_exchange(std::string_view vhost, std::string_view name) const {
  const auto found = exchanges_.find(name_of(vhost, name));
  return found == exchanges_.end() ? nullptr : &found->second;
}

const QueueDef* Topology::find_queue(std::string_view vhost, std::string_view name) const {
  const auto found = queues_.find(name_of(vhost, name));
  return found == queues_.end() ? nullptr : &found->second;
}

const QueueDef* Topology::find_queue(QueueId id) const {
  const auto found = queue_names_.find(id);
  return found == queue_names_.end() ? nullptr : &queues_.at(found->second);
}

bool Topology::has_binding(const BindingDef& binding) const {
  return binding_places_.contains(document_key(binding));
}

bool Topology::is_source(std::string_view vhost, std::string_view exchange) const {
  return bindings_.contains(name_of(vhost, exchange));
}

std::vector<BindingDef> Topology::bindings_to(std::string_view vhost, DestinationKind kind,
                                              std::string_view name) const {
  std::vector<BindingDef> bindings;
  const auto keys = binding_keys_by_end_.find({kind, name_of(vhost, name)});
  if (keys == binding_keys_by_end_.end()) return bindings;
  for (const auto& key : keys->second) {
    const BindingPlace& place = binding_places_.at(key);
    bindings.push_back(bindings_.at(place.source)[place.index]);
  }
  return bindings;
}

void Topology::add_vhost(const std::string& name) {
  vhosts_.insert_or_assign(name, VhostDef{name});
  for (const auto& predeclared : kPredeclaredExchanges) {
    add_exchange({.vhost = name,
                  .name = std::string(predeclared.name),
                  .type = std::string(predeclared.type),
                  .durable = true,
                  .auto_delete = false,
                  .internal = predeclared.internal,
                  .arguments = {}});
  }
}

void Topology::add_user(UserDef user) {
  const std::string name = user.name;
  users_.insert_or_assign(name, std::move(user));
}

void Topology::add_permission(PermissionDef permission) {
  const Name name{permission.vhost, permission.user};
  permissions_.insert_or_assign(name, std::move(permission));
}

void Topology::add_exchange(ExchangeDef exchange) {
  STOAT_ASSERT(!exchange.name.empty());
  const Name name{exchange.vhost, exchange.name};
  exchanges_.insert_or_assign(name, std::move(exchange));
}

void Topology::add_queue(QueueDef queue) {
  const Name name{queue.spec.vhost, queue.spec.name};
  const bool new_id = queue_names_.emplace(queue.spec.id, name).second;
  STOAT_ASSERT(new_id, queue.spec.id, queue.spec.name);
  const bool new_name = queues_.emplace(name, std::move(queue)).second;
  STOAT_ASSERT(new_name, name.first, name.second);
}

void Topology::add_binding(BindingDef binding) {
  const bool to_queue = binding.destination_kind == DestinationKind::queue;
  STOAT_ASSERT(find_exchange(binding.vhost, binding.source) != nullptr, binding.source);
  STOAT_ASSERT(to_queue ? find_queue(binding.vhost, binding.destination) != nullptr
                        : find_exchange(binding.vhost, binding.destination) != nullptr,
               binding.destination);
  const Name source{binding.vhost, binding.source};
  const std::string key = document_key(binding);
  auto& of_source = bindings_[source];
  if (!binding_places_.try_emplace(key, BindingPlace{source, of_source.size()}).second) return;
  binding_keys_by_end_[end_of(binding)].insert(key);
  of_source.push_back(std::move(binding));
}

bool Topology::remove_binding(const BindingDef& binding) {
  const std::string key = document_key(binding);
  if (!binding_places_.contains(key)) return false;
  take_binding(key);
  return true;
}

std::vector<BindingDef> Topology::remove_queue(std::string_view vhost, std::string_view name) {
  std::vector<BindingDef> removed;
  const auto queue = queues_.find(name_of(vhost, name));
  if (queue == queues_.end()) return removed;
  take_bindings_to({DestinationKind::queue, queue->first}, removed);
  queue_names_.erase(queue->second.spec.id);
  queues_.erase(queue);
  return removed;
}

std::vector<BindingDef> Topology::remove_exchange(std::string_view vhost, std::string_view name) {
  std::vector<BindingDef> removed;
  const auto exchange = exchanges_.find(name_of(vhost, name));
  if (exchange == exchanges_.end()) return removed;
  take_bindings_to({DestinationKind::exchange, exchange->first}, removed);
  for (auto left = bindings_.find(exchange->first); left != bindings_.end();
       left = bindings_.find(exchange->first)) {
    removed.push_back(take_binding(document_key(left->second.back())));
  }
  exchanges_.erase(exchange);
  return removed;
}

void Topology::take_bindings_to(const BindingEnd& end, std::vector<BindingDef>& taken) {
  for (auto keys = binding_keys_by_end_.find(end); keys != binding_keys_by_end_.end();
       keys = binding_keys_by_end_.find(end)) {
    taken.push_back(take_binding(*keys->second.begin()));
  }
}

// The last binding of the source moves into the gap.
BindingDef Topology::take_binding(const std::string& key) {
  const auto node = binding_places_.extract(key);
  STOAT_ASSERT(!node.empty(), key);
  const BindingPlace& place = node.mapped();
  auto& of_source = bindings_.at(place.source);
  BindingDef taken = std::move(of_source[place.index]);
  if (place.index + 1 < of_source.size()) {
    of_source[place.index] = std::move(of_source.back());
    binding_places_.at(document_key(of_source[place.index])).index = place.index;
  }
  of_source.pop_back();
  if (of_source.empty()) bindings_.erase(place.source);

  const auto end_keys = binding_keys_by_end_.find(end_of(taken));
  end_keys->second.erase(node.key());
  if (end_keys->second.empty()) binding_keys_by_end_.erase(end_keys);
  return taken;
}

bool Topology::persists(const QueueDef& queue) {
  return queue.spec.durable && !queue.spec.exclusive;
}

bool Topology::persists(const ExchangeDef& exchange) {
  return exchange.durable && !exchange.name.starts_with(kReservedPrefix);
}

bool Topology::persists(const BindingDef& binding) const {
  const ExchangeDef* source = find_exchange(binding.vhost, binding.source);
  if (source == nullptr || !source->durable) return false;
  if (binding.destination_kind == DestinationKind::exchange) {
    const ExchangeDef* destination = find_exchange(binding.vhost, binding.destination);
    return destination != nullptr && destination->durable;
  }
  const QueueDef* destination = find_queue(binding.vhost, binding.destination);
  return destination != nullptr && persists(*destination);
}

}  // namespace stoat::broker
