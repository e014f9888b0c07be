#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "broker/home.hpp"
#include "wire/field_value.hpp"

namespace stoat::broker {

struct VhostDef {
  std::string name;
};

struct UserDef {
  std::string name;
  std::string password_hash;  // base64, see broker/password.hpp; empty: cannot log in by password
  std::string hashing_algorithm;  // rabbit_password_hashing_sha256 or …_sha512
  std::vector<std::string> tags;  // administrator, monitoring, …
};

// Regular expressions over names, as in RabbitMQ; an empty one matches only the empty name. See
// broker/permissions.hpp.
struct PermissionDef {
  std::string user;
  std::string vhost;
  std::string configure;
  std::string write;
  std::string read;
};

struct ExchangeDef {
  std::string vhost;
  std::string name;
  std::string type;
  bool durable = false;
  bool auto_delete = false;
  bool internal = false;
  wire::Table arguments;
};

struct QueueDef {
  QueueSpec spec;
  WorkerIndex home;
  // The connection an exclusive queue belongs to.
  std::optional<ConnectionId> owner;
};

enum class DestinationKind : std::uint8_t { queue, exchange };

struct BindingDef {
  std::string vhost;
  std::string source;
  DestinationKind destination_kind = DestinationKind::queue;
  std::string destination;
  std::string routing_key;
  wire::Table arguments;
};

// Source, destination, binding key and arguments (by value).
bool same_binding(const BindingDef& a, const BindingDef& b);

// One JSON document of the stored definitions, under its key.
struct Document {
  std::string key;
  std::string json;
};

// All definitions: the truth that the control owner keeps, from which every worker's tables are
// made. Changes here are made after validation; persisting and telling the workers are Control's.
//
// Owner: Control. Thread: the control owner's.
// Invariants: the default exchange is implicit (never in the maps); a binding's ends exist;
// removing a queue or exchange removes its bindings.
class Topology {
 public:
  using Name = std::pair<std::string, std::string>;  // vhost, name

  // Vhost "/", user guest (password guest, tag administrator) with all permissions on it: the first
  // start. Adding a vhost brings its amq.* exchanges.
  void set_defaults();

  const std::map<std::string, VhostDef>& vhosts() const { return vhosts_; }
  const std::map<std::string, UserDef>& users() const { return users_; }
  const std::map<Name, PermissionDef>& permissions() const { return permissions_; }  // vhost, user
  const std::map<Name, ExchangeDef>& exchanges() const { return exchanges_; }
  const std::map<Name, QueueDef>& queues() const { return queues_; }
  // Bindings by source exchange.
  const std::map<Name, std::vector<BindingDef>>& bindings() const { return bindings_; }

  const ExchangeDef* find_exchange(std::string_view vhost, std::string_view name) const;
  const QueueDef* find_queue(std::string_view vhost, std::string_view name) const;
  const QueueDef* find_queue(QueueId id) const;
  bool has_binding(const BindingDef& binding) const;
  bool is_source(std::string_view vhost, std::string_view exchange) const;  // of any binding
  // Bindings that end at this queue or exchange.
  std::vector<BindingDef> bindings_to(std::string_view vhost, DestinationKind kind,
                                      std::string_view name) const;

  void add_vhost(const std::string& name);  // with amq.direct, amq.fanout, amq.topic, …
  void add_user(UserDef user);              // or replaces
  void add_permission(PermissionDef permission);
  void add_exchange(ExchangeDef exchange);
  void add_queue(QueueDef queue);
  void add_binding(BindingDef binding);  // no effect when an equal one is there
  bool remove_binding(const BindingDef& binding);
  // Returns the removed bindings.
  std::vector<BindingDef> remove_queue(std::string_view vhost, std::string_view name);
  std::vector<BindingDef> remove_exchange(std::string_view vhost, std::string_view name);

  // Of the bindings, only those between a durable exchange and a durable destination persist; of
  // the queues, durable ones that are not exclusive; of the exchanges, durable ones (amq.* and the
  // implicit ones are made anew).
  static bool persists(const QueueDef& queue);
  static bool persists(const ExchangeDef& exchange);
  bool persists(const BindingDef& binding) const;

  // Documents as stored. A binding's key contains a digest of its arguments.
  static Document document(const VhostDef&);
  static Document document(const UserDef&);
  static Document document(const PermissionDef&);
  static Document document(const ExchangeDef&);
  static Document document(const QueueDef&);
  static Document document(const BindingDef&);
  static std::string document_key(const BindingDef&);  // the same for equal bindings
  std::vector<Document> documents() const;             // of everything that persists

  // Rebuilds from stored documents. Throws std::runtime_error that names the document when one
  // cannot be read. Bindings whose ends are missing are dropped (and named in `dropped`).
  static Topology load(const std::vector<std::pair<std::string, std::string>>& documents,
                       std::vector<std::string>& dropped);

 private:
  std::map<std::string, VhostDef> vhosts_;
  std::map<std::string, UserDef> users_;
  std::map<Name, PermissionDef> permissions_;
  std::map<Name, ExchangeDef> exchanges_;
  std::map<Name, QueueDef> queues_;
  std::map<Name, std::vector<BindingDef>> bindings_;
  struct BindingPlace {
    Name source;
    std::size_t index = 0;  // in bindings_[source]
  };
  using BindingEnd = std::pair<DestinationKind, Name>;

  BindingDef take_binding(const std::string& key);
  void take_bindings_to(const BindingEnd& end, std::vector<BindingDef>& taken);

  std::map<QueueId, Name> queue_names_;
  // Both by document key, so that neither a bind nor the removal of a queue walks what else is
  // bound to the exchange.
  std::unordered_map<std::string, BindingPlace> binding_places_;
  std::map<BindingEnd, std::set<std::string>> binding_keys_by_end_;
};

}  // namespace stoat::broker
