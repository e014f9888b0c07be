#pragma once

#include "routing/exchange.hpp"

namespace stoat::routing {

// Matches every binding, whatever the keys.
class FanoutExchange final : public Exchange {
 public:
  FanoutExchange(const ExchangeSpec& spec, std::uint32_t number) : Exchange(spec, number) {}

  void match(RouteScratch& scratch) const override { all_.reach_all(scratch); }

 private:
  void insert(Binding& binding) override { all_.add(binding); }
  void erase(Binding& binding) override { all_.remove(binding); }

  BindingList all_;
};

}  // namespace stoat::routing
