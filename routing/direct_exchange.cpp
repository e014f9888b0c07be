#include "routing/direct_exchange.hpp"

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"

namespace stoat::routing {

void DirectExchange::match(RouteScratch& scratch) const {
  for (const std::string_view key : scratch.keys()) {
    if (const auto at = by_key_.find(key); at != by_key_.end()) at->second.reach_all(scratch);
  }
}

void DirectExchange::insert(Binding& binding) {
  by_key_[binding.key].add(binding);
}

void DirectExchange::erase(Binding& binding) {
  const auto at = by_key_.find(binding.key);
  STOAT_ASSERT(at != by_key_.end(), name(), binding.key);
  at->second.remove(binding);
  if (at->second.empty()) by_key_.erase(at);
}

}  // namespace stoat::routing
