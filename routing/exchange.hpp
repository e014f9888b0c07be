#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "routing/binding.hpp"
#include "routing/routing_table.hpp"

namespace stoat::routing {

// An exchange: its bindings, and by its type which of them a message matches.
// Owner: RoutingTable. Thread: the table's.
// Invariants: no two bindings of the same identity; a binding is in its destination's incoming list
// for as long as it lives.
// Does not: follow bindings to other exchanges or apply the alternate exchange; RoutingTable does.
class Exchange {
 public:
  static std::unique_ptr<Exchange> create(const ExchangeSpec& spec, std::uint32_t number);

  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  const std::string& name() const { return spec_.name; }
  ExchangeType type() const { return spec_.type; }
  const std::string& alternate_exchange() const { return spec_.alternate_exchange; }

  // Itself as the destination of other exchanges' bindings.
  const Destination& as_destination() const { return as_destination_; }
  Destination& as_destination() { return as_destination_; }

  // Whether it is the source of any binding.
  bool in_use() const { return !bindings_.empty(); }

  // false when an equal binding is there already (bind) or none is (unbind).
  bool bind(Destination& destination, std::string_view key, const wire::Table& arguments);
  bool unbind(const Destination& destination, std::string_view key, const wire::Table& arguments);
  // REQUIRES: binding.source is this. Destroys the binding.
  void unbind(Binding& binding);
  // Takes its bindings out of their destinations. It may only be destroyed afterwards.
  void retire();

  // Reaches, in scratch, the destinations of all bindings that match the message in scratch; each
  // may be reached more than once.
  virtual void match(RouteScratch& scratch) const = 0;

 protected:
  Exchange(const ExchangeSpec& spec, std::uint32_t number);

 private:
  // The type's own structure for matching.
  virtual void insert(Binding& binding) = 0;
  virtual void erase(Binding& binding) = 0;

  struct IdentityHash {
    using is_transparent = void;
    std::size_t operator()(const std::unique_ptr<Binding>& b) const { return b->hash; }
    std::size_t operator()(const Binding* b) const { return b->hash; }
    std::size_t operator()(const BindingIdentity& b) const { return b.hash(); }
  };
  struct IdentityEqual {
    using is_transparent = void;
    bool operator()(const std::unique_ptr<Binding>& a, const std::unique_ptr<Binding>& b) const {
      return a->hash == b->hash && a->identity() == b->identity();
    }
    bool operator()(const Binding* a, const std::unique_ptr<Binding>& b) const {
      return a == b.get();
    }
    bool operator()(const BindingIdentity& a, const std::unique_ptr<Binding>& b) const {
      return a == b->identity();
    }
  };
  using Bindings = boost::unordered_flat_set<std::unique_ptr<Binding>, IdentityHash, IdentityEqual>;

  void unbind(Bindings::iterator at);

  ExchangeSpec spec_;
  Destination as_destination_;
  Bindings bindings_;
};

}  // namespace stoat::routing
