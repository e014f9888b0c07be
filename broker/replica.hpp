#pragma once

#include <boost/unordered/unordered_map.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "broker/permissions.hpp"
#include "broker/topology.hpp"
#include "routing/routing_table.hpp"

namespace stoat::broker {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return boost::hash<std::string_view>()(text);
  }
};
template <class Value>
using NameMap = boost::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

// One vhost as a worker sees it: routes, and what declares and publishes ask about names.
struct VhostReplica {
  std::string name;
  routing::RoutingTable routes;
  NameMap<ExchangeDef> exchanges;
  NameMap<QueueDef> queues;

  const ExchangeDef* find_exchange(std::string_view exchange) const;
  const QueueDef* find_queue(std::string_view queue) const;
};

// What the control owner tells every worker after it was persisted.
namespace change {
struct AddVhost {
  std::string name;
};
struct SetUser {
  UserDef user;
};
struct SetPermission {
  PermissionDef permission;
};
struct AddExchange {
  ExchangeDef exchange;
};
struct RemoveExchange {
  std::string vhost, name;
};
struct AddQueue {
  QueueDef queue;
};
struct RemoveQueue {
  std::string vhost, name;
};
struct AddBinding {
  BindingDef binding;
};
struct RemoveBinding {
  BindingDef binding;
};
}  // namespace change

using Change = std::variant<change::AddVhost, change::SetUser, change::SetPermission,
                            change::AddExchange, change::RemoveExchange, change::AddQueue,
                            change::RemoveQueue, change::AddBinding, change::RemoveBinding>;

// A worker's own copy of the definitions, so that routing and lookups need no lock.
// Owner: Worker. Thread: that worker's only.
// Invariant: follows Topology, change by change, in the control owner's order.
class Replica {
 public:
  void apply(const Change& change);

  // nullptr when there is no such vhost. Stays valid: vhosts are not removed.
  VhostReplica* find_vhost(std::string_view name) const;
  const NameMap<std::unique_ptr<VhostReplica>>& vhosts() const { return vhosts_; }
  const UserDef* find_user(std::string_view name) const;
  // nullptr: the user may not use the vhost.
  std::shared_ptr<const Permissions> permissions(std::string_view user,
                                                 std::string_view vhost) const;
  // Rises when users or permissions change: connections look their permissions up again.
  std::uint64_t rights_generation() const { return rights_generation_; }

 private:
  void apply(const change::AddVhost&);
  void apply(const change::SetUser&);
  void apply(const change::SetPermission&);
  void apply(const change::AddExchange&);
  void apply(const change::RemoveExchange&);
  void apply(const change::AddQueue&);
  void apply(const change::RemoveQueue&);
  void apply(const change::AddBinding&);
  void apply(const change::RemoveBinding&);
  VhostReplica& vhost(std::string_view name);

  NameMap<std::unique_ptr<VhostReplica>> vhosts_;
  NameMap<UserDef> users_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Permissions>> permissions_;
  std::uint64_t rights_generation_ = 0;
};

// The alternate exchange named by an exchange's arguments; empty when none is.
std::string alternate_exchange_of(const ExchangeDef& exchange);

}  // namespace stoat::broker
