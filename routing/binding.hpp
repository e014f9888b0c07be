#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "wire/field_value.hpp"

namespace stoat::routing {

class Exchange;
class RouteScratch;
struct Binding;

// A queue or an exchange, as matching hands it on.
struct Target {
  const Exchange* exchange = nullptr;  // null: it is a queue
  QueueId queue;
  std::uint32_t number = 0;  // small and dense within a table; RouteScratch marks by it
};

// What a binding leads to.
// Owner: RoutingTable for a queue, the Exchange for an exchange; its address is its identity.
struct Destination {
  Target target;
  std::vector<Binding*> incoming;  // the bindings that lead here; Exchange keeps it
};

// What identifies a binding among those of one source. Arguments compare by value.
struct BindingIdentity {
  const Destination& destination;
  std::string_view key;
  const wire::Table& arguments;

  std::size_t hash() const;
};

// Owner: the source exchange. Its address does not change, so the exchange types may keep views of
// its arguments.
struct Binding {
  Exchange& source;
  Destination& destination;
  const std::string key;
  const wire::Table arguments;
  const std::size_t hash;            // of its identity
  std::uint32_t incoming_place = 0;  // in destination.incoming
  std::uint32_t list_place = 0;      // in the one list of its exchange type that holds it

  BindingIdentity identity() const { return {destination, key, arguments}; }
};

bool operator==(const BindingIdentity& a, const BindingIdentity& b);

// Bindings that match together (all of one binding key, say), in no order. Each binding knows its
// place, so one is removed in constant time from however many.
class BindingList {
 public:
  void add(Binding& binding);
  // REQUIRES: added here, and in no other list since.
  void remove(Binding& binding);
  bool empty() const { return entries_.empty(); }
  void reach_all(RouteScratch& scratch) const;

 private:
  struct Entry {
    Target target;  // a copy: matching touches neither the binding nor its destination
    Binding* binding;
  };
  boost::container::small_vector<Entry, 1> entries_;
};

}  // namespace stoat::routing
