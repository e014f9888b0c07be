#pragma once

#include "routing/exchange.hpp"
#include "routing/string_map.hpp"

namespace stoat::routing {

// Matches bindings whose key is the routing key, byte for byte.
class DirectExchange final : public Exchange {
 public:
  DirectExchange(const ExchangeSpec& spec, std::uint32_t number) : Exchange(spec, number) {}

  void match(RouteScratch& scratch) const override;

 private:
  void insert(Binding& binding) override;
  void erase(Binding& binding) override;

  StringMap<BindingList> by_key_;  // no list in it is empty
};

}  // namespace stoat::routing
