#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "wire/field_value.hpp"
#include "wire/properties.hpp"

namespace stoat::routing {

enum class ExchangeType { direct, fanout, topic, headers };

// nullopt-like: false when the name is none of the types above.
bool parse_exchange_type(std::string_view name, ExchangeType& type);
std::string_view name_of(ExchangeType type);

struct ExchangeSpec {
  std::string name;
  ExchangeType type = ExchangeType::direct;
  std::string alternate_exchange;  // empty: none
};

// What is routed: the parts of a publish that exchanges look at. Views are not kept.
struct Routable {
  std::string_view routing_key;
  const wire::PropertiesView* properties = nullptr;  // read by headers exchanges only
};

// Buffers that route() fills, reused from call to call so that routing allocates nothing once warm.
class RouteScratch;

class Exchange;

// The exchanges and bindings of one vhost, resolved to queue ids: each worker has its own copy and
// routes with it.
// Owner: broker::Worker, one per vhost. Thread: that worker's only.
// Invariants: a binding is identified by (source, destination, binding key, arguments by value);
// a queue is in a result at most once; routing ends whatever cycles exchange bindings form.
// Does not: know queues as objects, check permissions, persist anything.
class RoutingTable {
 public:
  RoutingTable();
  ~RoutingTable();
  RoutingTable(const RoutingTable&) = delete;
  RoutingTable& operator=(const RoutingTable&) = delete;

  // REQUIRES: no exchange of that name.
  void add_exchange(const ExchangeSpec& spec);
  // Drops the exchange with the bindings it is source or destination of; false when absent. To
  // `unused`, when given, are added the exchanges that thereby lost their last binding as source.
  // REQUIRES: not the default exchange.
  bool remove_exchange(std::string_view name, std::vector<std::string>* unused = nullptr);
  bool has_exchange(std::string_view name) const;
  // Whether the exchange is the source of any binding: what if-unused and auto-delete ask. False
  // when absent.
  bool is_source_in_use(std::string_view exchange) const;

  // The default exchange: a direct exchange named "" in which every queue is bound by its name.
  // REQUIRES: no queue of that id.
  void add_queue(std::string_view name, QueueId id);
  // Drops the queue with all its bindings; nothing when absent. `unused` as in remove_exchange; the
  // default exchange is never among them. REQUIRES: the name is the one it was added by.
  void remove_queue(std::string_view name, QueueId id, std::vector<std::string>* unused = nullptr);

  // false when an equal binding is there already (bind) or none is (unbind).
  // REQUIRES of bind: source and destination exist; x-match validated by check_headers_binding.
  bool bind_queue(std::string_view source, QueueId destination, std::string_view binding_key,
                  const wire::Table& arguments);
  bool unbind_queue(std::string_view source, QueueId destination, std::string_view binding_key,
                    const wire::Table& arguments);
  bool bind_exchange(std::string_view source, std::string_view destination,
                     std::string_view binding_key, const wire::Table& arguments);
  bool unbind_exchange(std::string_view source, std::string_view destination,
                       std::string_view binding_key, const wire::Table& arguments);

  // A handle for repeated publishes to one exchange; nullptr when absent. Valid until generation()
  // changes.
  const Exchange* find(std::string_view exchange) const;
  // Rises with every change of exchanges, queues or bindings: a cache of routes is good while it
  // stands still.
  std::uint64_t generation() const { return generation_; }

  // The queues that a message reaches from `exchange`, each once, through exchange bindings, the
  // alternate exchanges of exchanges that match nothing, and the extra keys (CC and BCC). The
  // result lives in scratch until its next use.
  std::span<const QueueId> route(const Exchange& exchange, const Routable& message,
                                 std::span<const std::string_view> extra_keys,
                                 RouteScratch& scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t generation_ = 0;
};

// Why a binding's arguments are no good for a headers exchange ("x-match must be …"); empty when
// they are.
std::string check_headers_binding(const wire::Table& arguments);

}  // namespace stoat::routing
