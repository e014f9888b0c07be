#include "routing/binding.hpp"

#include <functional>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"
#include "routing/table_index.hpp"

namespace stoat::routing {

std::size_t BindingIdentity::hash() const {
  std::size_t result = std::hash<std::string_view>{}(key);
  result = mix_hash(result, destination.target.number);
  if (arguments.empty()) return result;
  const TableIndex index(arguments);
  for (const TableIndex::Entry& entry : index.entries()) {
    result = mix_hash(result, std::hash<std::string_view>{}(entry.key));
    result = mix_hash(result, value_hash(*entry.value));
  }
  return result;
}

bool operator==(const BindingIdentity& a, const BindingIdentity& b) {
  return &a.destination == &b.destination && a.key == b.key &&
         wire::equivalent(a.arguments, b.arguments);
}

void BindingList::add(Binding& binding) {
  binding.list_place = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({binding.destination.target, &binding});
}

void BindingList::remove(Binding& binding) {
  const std::uint32_t place = binding.list_place;
  STOAT_ASSERT(place < entries_.size() && entries_[place].binding == &binding, place,
               entries_.size());
  entries_[place] = entries_.back();
  entries_[place].binding->list_place = place;
  entries_.pop_back();
}

void BindingList::reach_all(RouteScratch& scratch) const {
  for (const Entry& entry : entries_) scratch.reach(entry.target);
}

}  // namespace stoat::routing
