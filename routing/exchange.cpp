#include "routing/exchange.hpp"

#include "base/assert.hpp"
#include "routing/direct_exchange.hpp"
#include "routing/fanout_exchange.hpp"
#include "routing/headers_exchange.hpp"
#include "routing/topic_exchange.hpp"

namespace stoat::routing {

namespace {

void add_incoming(Binding& binding) {
  std::vector<Binding*>& incoming = binding.destination.incoming;
  binding.incoming_place = static_cast<std::uint32_t>(incoming.size());
  incoming.push_back(&binding);
}

void remove_incoming(Binding& binding) {
  std::vector<Binding*>& incoming = binding.destination.incoming;
  const std::uint32_t place = binding.incoming_place;
  STOAT_ASSERT(place < incoming.size() && incoming[place] == &binding, place, incoming.size());
  incoming[place] = incoming.back();
  incoming[place]->incoming_place = place;
  incoming.pop_back();
}

}  // namespace

std::unique_ptr<Exchange> Exchange::create(const ExchangeSpec& spec, std::uint32_t number) {
  switch (spec.type) {
    case ExchangeType::direct:
      return std::make_unique<DirectExchange>(spec, number);
    case ExchangeType::fanout:
      return std::make_unique<FanoutExchange>(spec, number);
    case ExchangeType::topic:
      return std::make_unique<TopicExchange>(spec, number);
    case ExchangeType::headers:
      return std::make_unique<HeadersExchange>(spec, number);
  }
  STOAT_ASSERT(false, static_cast<int>(spec.type));
  return nullptr;
}

Exchange::Exchange(const ExchangeSpec& spec, std::uint32_t number) : spec_(spec) {
  as_destination_.target = {.exchange = this, .queue = {}, .number = number};
}

bool Exchange::bind(Destination& destination, std::string_view key, const wire::Table& arguments) {
  const BindingIdentity identity{destination, key, arguments};
  if (bindings_.find(identity) != bindings_.end()) return false;
  std::unique_ptr<Binding> owned(
      new Binding{*this, destination, std::string(key), arguments, identity.hash()});
  Binding& binding = *owned;
  bindings_.insert(std::move(owned));
  add_incoming(binding);
  insert(binding);
  return true;
}

bool Exchange::unbind(const Destination& destination, std::string_view key,
                      const wire::Table& arguments) {
  const auto at = bindings_.find(BindingIdentity{destination, key, arguments});
  if (at == bindings_.end()) return false;
  unbind(at);
  return true;
}

void Exchange::unbind(Binding& binding) {
  const auto at = bindings_.find(&binding);
  STOAT_ASSERT(at != bindings_.end(), spec_.name, binding.key);
  unbind(at);
}

void Exchange::unbind(Bindings::iterator at) {
  Binding& binding = **at;
  erase(binding);
  remove_incoming(binding);
  bindings_.erase(at);
}

void Exchange::retire() {
  for (const std::unique_ptr<Binding>& binding : bindings_) remove_incoming(*binding);
}

}  // namespace stoat::routing
