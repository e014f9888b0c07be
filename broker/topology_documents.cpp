// Topology as the store keeps it: JSON documents, one for each definition.
//
//   vhost/VHOST                                         {"name": …}
//   user/NAME                                           {"name": …, "password_hash": …, …}
//   permission/VHOST/USER                               {"vhost": …, "user": …, "configure": …, …}
//   exchange/VHOST/NAME                                 {"vhost": …, "name": …, "type": …, …}
//   queue/VHOST/NAME                                    {"vhost": …, "name": …, "id": 7, …}
//   binding/VHOST/SOURCE/queue/DESTINATION/KEY/DIGEST   {"vhost": …, "source": …, …}
//   binding/VHOST/SOURCE/exchange/…
//
// Names in keys are percent-encoded where they contain a slash or a percent sign, so that the vhost
// "/" is %2F, as in RabbitMQ's HTTP paths.

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <initializer_list>
#include <stdexcept>

#include "broker/arguments_digest.hpp"
#include "broker/arguments_json.hpp"
#include "broker/json_fields.hpp"
#include "broker/topology.hpp"

namespace stoat::broker {

namespace json = boost::json;

namespace {

constexpr std::string_view kVhost = "vhost";
constexpr std::string_view kUser = "user";
constexpr std::string_view kPermission = "permission";
constexpr std::string_view kExchange = "exchange";
constexpr std::string_view kQueue = "queue";
constexpr std::string_view kBinding = "binding";

std::string key_of(std::string_view kind, std::initializer_list<std::string_view> names) {
  std::string key(kind);
  for (const std::string_view name : names) {
    key += '/';
    for (const char c : name) {
      if (c == '/') {
        key += "%2F";
      } else if (c == '%') {
        key += "%25";
      } else {
        key += c;
      }
    }
  }
  return key;
}

std::string_view name_of(DestinationKind kind) {
  return kind == DestinationKind::queue ? kQueue : kExchange;
}

// Names and patterns may hold bytes that are no UTF-8; those go through the form that arguments
// use.
json::value text(const std::string& bytes) {
  return to_json(wire::FieldValue(bytes));
}

std::string read_text(const JsonFields& fields, std::string_view member) {
  const wire::FieldValue value = field_from_json(fields.at(member), fields.where());
  if (value.as_string() == nullptr) fields.fail(member, "must be a string");
  return *value.as_string();
}

wire::Table read_arguments(const JsonFields& fields) {
  return table_from_json(fields.at("arguments"), fields.where() + ": 'arguments'");
}

VhostDef read_vhost(const JsonFields& from) {
  return {read_text(from, "name")};
}

UserDef read_user(const JsonFields& from) {
  UserDef user{
      read_text(from, "name"), from.text("password_hash"), from.text("hashing_algorithm"), {}};
  const json::array* tags = from.at("tags").if_array();
  if (tags == nullptr) from.fail("tags", "must be a list");
  for (const auto& tag : *tags) {
    if (!tag.is_string()) from.fail("tags", "must be a list of strings");
    user.tags.emplace_back(tag.get_string().data(), tag.get_string().size());
  }
  return user;
}

PermissionDef read_permission(const JsonFields& from) {
  return {read_text(from, "user"), read_text(from, "vhost"), read_text(from, "configure"),
          read_text(from, "write"), read_text(from, "read")};
}

ExchangeDef read_exchange(const JsonFields& from) {
  return {.vhost = read_text(from, "vhost"),
          .name = read_text(from, "name"),
          .type = from.text("type"),
          .durable = from.flag("durable"),
          .auto_delete = from.flag("auto_delete"),
          .internal = from.flag("internal"),
          .arguments = read_arguments(from)};
}

QueueDef read_queue(const JsonFields& from) {
  return {.spec = {.id = QueueId(from.number("id")),
                   .vhost = read_text(from, "vhost"),
                   .name = read_text(from, "name"),
                   .durable = from.flag("durable"),
                   .exclusive = false,
                   .auto_delete = from.flag("auto_delete"),
                   .arguments = read_arguments(from)},
          .home = {},
          .owner = std::nullopt};
}

BindingDef read_binding(const JsonFields& from) {
  const std::string kind = from.text("destination_type");
  if (kind != kQueue && kind != kExchange) {
    from.fail("destination_type", "must be 'queue' or 'exchange'");
  }
  return {.vhost = read_text(from, "vhost"),
          .source = read_text(from, "source"),
          .destination_kind = kind == kQueue ? DestinationKind::queue : DestinationKind::exchange,
          .destination = read_text(from, "destination"),
          .routing_key = read_text(from, "routing_key"),
          .arguments = read_arguments(from)};
}

Document make(std::string key, const json::object& object) {
  return {std::move(key), json::serialize(object)};
}

}  // namespace

std::string Topology::document_key(const BindingDef& binding) {
  return key_of(kBinding,
                {binding.vhost, binding.source, name_of(binding.destination_kind),
                 binding.destination, binding.routing_key, arguments_digest(binding.arguments)});
}

Document Topology::document(const VhostDef& vhost) {
  return make(key_of(kVhost, {vhost.name}), {{"name", text(vhost.name)}});
}

Document Topology::document(const UserDef& user) {
  return make(key_of(kUser, {user.name}),
              {{"name", text(user.name)},
               {"password_hash", user.password_hash},
               {"hashing_algorithm", user.hashing_algorithm},
               {"tags", json::array(user.tags.begin(), user.tags.end())}});
}

Document Topology::document(const PermissionDef& permission) {
  return make(key_of(kPermission, {permission.vhost, permission.user}),
              {{"user", text(permission.user)},
               {"vhost", text(permission.vhost)},
               {"configure", text(permission.configure)},
               {"write", text(permission.write)},
               {"read", text(permission.read)}});
}

Document Topology::document(const ExchangeDef& exchange) {
  return make(key_of(kExchange, {exchange.vhost, exchange.name}),
              {{"vhost", text(exchange.vhost)},
               {"name", text(exchange.name)},
               {"type", exchange.type},
               {"durable", exchange.durable},
               {"auto_delete", exchange.auto_delete},
               {"internal", exchange.internal},
               {"arguments", to_json(exchange.arguments)}});
}

Document Topology::document(const QueueDef& queue) {
  return make(key_of(kQueue, {queue.spec.vhost, queue.spec.name}),
              {{"vhost", text(queue.spec.vhost)},
               {"name", text(queue.spec.name)},
               {"id", queue.spec.id.value},
               {"durable", queue.spec.durable},
               {"auto_delete", queue.spec.auto_delete},
               {"arguments", to_json(queue.spec.arguments)}});
}

Document Topology::document(const BindingDef& binding) {
  return make(document_key(binding), {{"vhost", text(binding.vhost)},
                                      {"source", text(binding.source)},
                                      {"destination_type", name_of(binding.destination_kind)},
                                      {"destination", text(binding.destination)},
                                      {"routing_key", text(binding.routing_key)},
                                      {"arguments", to_json(binding.arguments)}});
}

std::vector<Document> Topology::documents() const {
  std::vector<Document> documents;
  for (const auto& [name, vhost] : vhosts_) documents.push_back(document(vhost));
  for (const auto& [name, user] : users_) documents.push_back(document(user));
  for (const auto& [name, permission] : permissions_) documents.push_back(document(permission));
  for (const auto& [name, exchange] : exchanges_) {
    if (persists(exchange)) documents.push_back(document(exchange));
  }
  for (const auto& [name, queue] : queues_) {
    if (persists(queue)) documents.push_back(document(queue));
  }
  for (const auto& [source, bindings] : bindings_) {
    for (const auto& binding : bindings) {
      if (persists(binding)) documents.push_back(document(binding));
    }
  }
  return documents;
}

Topology Topology::load(const std::vector<std::pair<std::string, std::string>>& documents,
                        std::vector<std::string>& dropped) {
  Topology topology;
  const auto need_vhost = [&topology](const JsonFields& fields, const std::string& vhost) {
    if (!topology.vhosts_.contains(vhost)) fields.fail("vhost", "names no vhost that exists");
  };
  const auto has = [&topology](const BindingDef& binding) {
    const bool to_queue = binding.destination_kind == DestinationKind::queue;
    return topology.find_exchange(binding.vhost, binding.source) != nullptr &&
           (to_queue ? topology.find_queue(binding.vhost, binding.destination) != nullptr
                     : topology.find_exchange(binding.vhost, binding.destination) != nullptr);
  };
  const auto add = [&](std::string_view kind, const std::string& key, const JsonFields& fields) {
    if (kind == kVhost) {
      topology.add_vhost(read_vhost(fields).name);
    } else if (kind == kUser) {
      topology.add_user(read_user(fields));
    } else if (kind == kPermission) {
      topology.add_permission(read_permission(fields));
    } else if (kind == kExchange) {
      ExchangeDef exchange = read_exchange(fields);
      need_vhost(fields, exchange.vhost);
      if (exchange.name.empty()) fields.fail("name", "must not be empty");
      topology.add_exchange(std::move(exchange));
    } else if (kind == kQueue) {
      QueueDef queue = read_queue(fields);
      need_vhost(fields, queue.spec.vhost);
      if (topology.find_queue(queue.spec.id) != nullptr) {
        fields.fail("id", "is another queue's");
      }
      if (topology.find_queue(queue.spec.vhost, queue.spec.name) != nullptr) {
        fields.fail("name", "is another queue's");
      }
      topology.add_queue(std::move(queue));
    } else {
      BindingDef binding = read_binding(fields);
      if (has(binding)) {
        topology.add_binding(std::move(binding));
      } else {
        dropped.push_back(key);
      }
    }
  };

  // What is referred to comes before what refers to it.
  constexpr std::array kOrder{kVhost, kUser, kPermission, kExchange, kQueue, kBinding};
  const auto kind_of = [](const std::string& key) {
    return std::string_view(key).substr(0, key.find('/'));
  };
  for (const auto& [key, text] : documents) {
    if (std::find(kOrder.begin(), kOrder.end(), kind_of(key)) == kOrder.end()) {
      throw std::runtime_error("stored definition '" + key + "' is of an unknown kind");
    }
  }
  for (const std::string_view kind : kOrder) {
    for (const auto& [key, text] : documents) {
      if (kind_of(key) != kind) continue;
      const std::string where = "stored definition '" + key + "'";
      json::value parsed;
      try {
        parsed = parse_json(text);
      } catch (const JsonMistake& mistake) {
        throw std::runtime_error(where + ": " + mistake.what());
      }
      add(kind, key, JsonFields(parsed, where));
    }
  }
  return topology;
}

}  // namespace stoat::broker
