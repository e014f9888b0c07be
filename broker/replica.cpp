#include "broker/replica.hpp"

#include "base/assert.hpp"

namespace stoat::broker {

const ExchangeDef* VhostReplica::find_exchange(std::string_view exchange) const {
  const auto it = exchanges.find(exchange);
  return it == exchanges.end() ? nullptr : &it->second;
}

const QueueDef* VhostReplica::find_queue(std::string_view queue) const {
  const auto it = queues.find(queue);
  return it == queues.end() ? nullptr : &it->second;
}

std::string alternate_exchange_of(const ExchangeDef& exchange) {
  for (const char* key : {"alternate-exchange", "x-alternate-exchange"}) {
    if (const auto* value = exchange.arguments.find(key)) {
      if (const auto* name = value->as_string()) return *name;
    }
  }
  return {};
}

void Replica::apply(const Change& change) {
  std::visit([this](const auto& c) { apply(c); }, change);
}

VhostReplica* Replica::find_vhost(std::string_view name) const {
  const auto it = vhosts_.find(name);
  return it == vhosts_.end() ? nullptr : it->second.get();
}

const UserDef* Replica::find_user(std::string_view name) const {
  const auto it = users_.find(name);
  return it == users_.end() ? nullptr : &it->second;
}

std::shared_ptr<const Permissions> Replica::permissions(std::string_view user,
                                                        std::string_view vhost) const {
  const auto it = permissions_.find({std::string(user), std::string(vhost)});
  return it == permissions_.end() ? nullptr : it->second;
}

VhostReplica& Replica::vhost(std::string_view name) {
  VhostReplica* found = find_vhost(name);
  STOAT_ASSERT(found != nullptr, name);
  return *found;
}

void Replica::apply(const change::AddVhost& c) {
  auto& slot = vhosts_[c.name];
  if (slot != nullptr) return;
  slot = std::make_unique<VhostReplica>();
  slot->name = c.name;
}

void Replica::apply(const change::SetUser& c) {
  users_[c.user.name] = c.user;
  ++rights_generation_;
}

void Replica::apply(const change::SetPermission& c) {
  permissions_[{c.permission.user, c.permission.vhost}] =
      std::make_shared<const Permissions>(c.permission);
  ++rights_generation_;
}

void Replica::apply(const change::AddExchange& c) {
  VhostReplica& v = vhost(c.exchange.vhost);
  routing::ExchangeSpec spec;
  spec.name = c.exchange.name;
  const bool known = routing::parse_exchange_type(c.exchange.type, spec.type);
  STOAT_ASSERT(known, c.exchange.type);
  spec.alternate_exchange = alternate_exchange_of(c.exchange);
  v.routes.add_exchange(spec);
  v.exchanges.emplace(c.exchange.name, c.exchange);
}

void Replica::apply(const change::RemoveExchange& c) {
  VhostReplica& v = vhost(c.vhost);
  v.routes.remove_exchange(c.name);
  v.exchanges.erase(c.name);
}

void Replica::apply(const change::AddQueue& c) {
  VhostReplica& v = vhost(c.queue.spec.vhost);
  v.routes.add_queue(c.queue.spec.name, c.queue.spec.id);
  v.queues.emplace(c.queue.spec.name, c.queue);
}

void Replica::apply(const change::RemoveQueue& c) {
  VhostReplica& v = vhost(c.vhost);
  const auto it = v.queues.find(c.name);
  STOAT_ASSERT(it != v.queues.end(), c.name);
  v.routes.remove_queue(c.name, it->second.spec.id);
  v.queues.erase(it);
}

void Replica::apply(const change::AddBinding& c) {
  VhostReplica& v = vhost(c.binding.vhost);
  const BindingDef& b = c.binding;
  if (b.destination_kind == DestinationKind::exchange) {
    v.routes.bind_exchange(b.source, b.destination, b.routing_key, b.arguments);
    return;
  }
  const QueueDef* queue = v.find_queue(b.destination);
  STOAT_ASSERT(queue != nullptr, b.destination);
  v.routes.bind_queue(b.source, queue->spec.id, b.routing_key, b.arguments);
}

void Replica::apply(const change::RemoveBinding& c) {
  VhostReplica& v = vhost(c.binding.vhost);
  const BindingDef& b = c.binding;
  if (b.destination_kind == DestinationKind::exchange) {
    v.routes.unbind_exchange(b.source, b.destination, b.routing_key, b.arguments);
    return;
  }
  if (const QueueDef* queue = v.find_queue(b.destination)) {
    v.routes.unbind_queue(b.source, queue->spec.id, b.routing_key, b.arguments);
  }
}

}  // namespace stoat::broker
