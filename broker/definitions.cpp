#include "broker/definitions.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <system_error>

#include "broker/arguments_digest.hpp"
#include "broker/arguments_json.hpp"
#include "broker/json_fields.hpp"
#include "broker/password.hpp"
#include "broker/permissions.hpp"
#include "broker/queue_arguments.hpp"
#include "broker/whole_file.hpp"
#include "routing/routing_table.hpp"

namespace stoat::broker {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxNameBytes = 255;  // a short string
constexpr std::string_view kReservedPrefix = "amq.";

// Members of the document that are read.
constexpr std::string_view kRead[] = {
    "vhosts", "users",    "permissions", "topic_permissions", "exchanges",
    "queues", "bindings", "policies",    "parameters",        "global_parameters"};

// Members of the document that say where it comes from.
constexpr std::string_view kAboutTheFile[] = {"rabbit_version",
                                              "rabbitmq_version",
                                              "product_name",
                                              "product_version",
                                              "rabbitmq_definition_format",
                                              "original_vhost_name",
                                              "original_cluster_name",
                                              "explanation",
                                              "metadata",
                                              "description",
                                              "default_queue_type"};

bool contains(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

class DefinitionsParser {
 public:
  explicit DefinitionsParser(const Topology& existing) : existing_(existing) {}

  Definitions parse(const json::value& document) {
    const JsonFields fields(document, "the document");
    each(fields, "vhosts", [this](const json::value& entry) { vhost(entry); });
    each(fields, "users", [this](const json::value& entry) { user(entry); });
    each(fields, "permissions", [this](const json::value& entry) { permission(entry); });
    each(fields, "topic_permissions", [](const json::value&) {
      throw JsonMistake(
          "topic_permissions are not supported, and leaving them out would grant "
          "more than they do");
    });
    each(fields, "exchanges", [this](const json::value& entry) { exchange(entry); });
    each(fields, "queues", [this](const json::value& entry) { queue(entry); });
    each(fields, "bindings", [this](const json::value& entry) { binding(entry); });
    each(fields, "policies", [this](const json::value& entry) {
      ignore_named("policy", entry, "policies are not supported");
    });
    each(fields, "parameters", [this](const json::value& entry) {
      ignore_named("parameter", entry, "runtime parameters are not supported");
    });
    each(fields, "global_parameters", [this](const json::value& entry) {
      ignore_named("global parameter", entry, "global parameters are not supported");
    });
    ignore_unknown(document.get_object());
    return std::move(result_);
  }

 private:
  static void each(const JsonFields& document, std::string_view member,
                   const std::function<void(const json::value&)>& take) {
    const json::value* list = document.find(member);
    if (list == nullptr) return;
    if (!list->is_array()) document.fail(member, "must be a list");
    for (const json::value& entry : list->get_array()) take(entry);
  }

  void ignore(const std::string& what, std::string_view reason) {
    result_.ignored.push_back(what + ": " + std::string(reason));
  }

  void ignore_named(const std::string& kind, const json::value& entry, std::string_view reason) {
    const JsonFields fields(entry, "a " + kind);
    ignore(kind + " " + in_quotes(fields.text_or("name", "")), reason);
  }

  void ignore_unknown(const json::object& document) {
    for (const auto& member : document) {
      const std::string_view name(member.key().data(), member.key().size());
      const bool known = contains(kRead, name) || contains(kAboutTheFile, name);
      if (!known) ignore("member " + in_quotes(name), "unknown");
    }
  }

  // A name that goes into methods: not empty, a short string, one line.
  static std::string name_in(const JsonFields& fields, std::string_view member) {
    std::string name = fields.text(member);
    if (name.empty()) fields.fail(member, "must not be empty");
    check_short(fields, member, name);
    if (name.find_first_of("\r\n") != std::string::npos) {
      fields.fail(member, "must not contain line breaks");
    }
    return name;
  }

  static void check_short(const JsonFields& fields, std::string_view member,
                          const std::string& text) {
    if (text.size() > kMaxNameBytes) fields.fail(member, "must have at most 255 bytes");
  }

  std::string vhost_in(const JsonFields& fields) const {
    std::string vhost = name_in(fields, "vhost");
    if (!existing_.vhosts().contains(vhost) && !new_vhosts_.contains(vhost)) {
      throw JsonMistake(fields.where() + ": vhost " + in_quotes(vhost) + " does not exist");
    }
    return vhost;
  }

  template <class Key>
  static void once(std::set<Key>& seen, const Key& key, const std::string& what) {
    if (!seen.insert(key).second) throw JsonMistake(what + " appears twice");
  }

  void vhost(const json::value& entry) {
    const std::string name = name_in(JsonFields(entry, "a vhost"), "name");
    once(new_vhosts_, name, "vhost " + in_quotes(name));
    if (existing_.vhosts().contains(name)) return;
    result_.vhosts.push_back({name});
    Topology fresh;
    fresh.add_vhost(name);
    for (const auto& [key, own] : fresh.exchanges()) new_exchanges_.emplace(key, own.type);
  }

  void user(const json::value& entry) {
    const std::string name = name_in(JsonFields(entry, "a user"), "name");
    const JsonFields fields(entry, "user " + in_quotes(name));
    once(new_users_, name, fields.where());
    UserDef user{.name = name,
                 .password_hash = {},
                 .hashing_algorithm = fields.text_or("hashing_algorithm", kSha256Algorithm),
                 .tags = tags_in(fields)};
    if (fields.find("password") != nullptr) {
      user.password_hash = hash_password(fields.text("password"));
      user.hashing_algorithm = kSha256Algorithm;
    } else {
      user.password_hash = fields.text("password_hash");
    }
    const std::string mistake = check_password_hash(user.password_hash, user.hashing_algorithm);
    if (!mistake.empty()) throw JsonMistake(fields.where() + ": " + mistake);
    const json::value* limits = fields.find("limits");
    if (limits != nullptr && limits->is_object() && !limits->get_object().empty()) {
      ignore("limits of " + fields.where(), "user limits are not supported");
    }
    result_.users.push_back(std::move(user));
  }

  // A list, or one string with commas as older versions wrote it.
  static std::vector<std::string> tags_in(const JsonFields& fields) {
    std::vector<std::string> tags;
    const json::value* value = fields.find("tags");
    if (value == nullptr) return tags;
    if (const json::array* list = value->if_array()) {
      for (const auto& tag : *list) {
        if (!tag.is_string()) fields.fail("tags", "must be a list of strings");
        tags.emplace_back(tag.get_string().data(), tag.get_string().size());
      }
      return tags;
    }
    std::istringstream text(fields.text("tags"));
    for (std::string tag; std::getline(text, tag, ',');) {
      const auto first = tag.find_first_not_of(' ');
      if (first == std::string::npos) continue;
      tags.push_back(tag.substr(first, tag.find_last_not_of(' ') - first + 1));
    }
    return tags;
  }

  void permission(const json::value& entry) {
    const JsonFields any(entry, "a permission");
    PermissionDef permission{.user = name_in(any, "user"),
                             .vhost = vhost_in(any),
                             .configure = {},
                             .write = {},
                             .read = {}};
    const JsonFields fields(entry, "permission of user " + in_quotes(permission.user) +
                                       " on vhost " + in_quotes(permission.vhost));
    if (!existing_.users().contains(permission.user) && !new_users_.contains(permission.user)) {
      throw JsonMistake(fields.where() + ": the user does not exist");
    }
    once(new_permissions_, Topology::Name{permission.vhost, permission.user}, fields.where());
    permission.configure = pattern_in(fields, "configure");
    permission.write = pattern_in(fields, "write");
    permission.read = pattern_in(fields, "read");
    result_.permissions.push_back(std::move(permission));
  }

  static std::string pattern_in(const JsonFields& fields, std::string_view member) {
    std::string pattern = fields.text(member);
    const std::string mistake = check_pattern(pattern);
    if (!mistake.empty()) throw JsonMistake(fields.where() + ": " + mistake);
    return pattern;
  }

  static wire::Table arguments_in(const JsonFields& fields) {
    const json::value* arguments = fields.find("arguments");
    // Some exporters write an empty table as an empty list.
    if (arguments == nullptr || (arguments->is_array() && arguments->get_array().empty()))
      return {};
    return table_from_json(*arguments, fields.where() + ": 'arguments'");
  }

  void exchange(const json::value& entry) {
    const JsonFields any(entry, "an exchange");
    const std::string vhost = vhost_in(any);
    if (any.text("name").empty()) return;  // the default exchange is everywhere
    const std::string name = name_in(any, "name");
    const JsonFields fields(entry, exchange_in_vhost(name, vhost));
    if (name.starts_with(kReservedPrefix)) {
      ignore(fields.where(), "exchanges of this name are the broker's own");
      return;
    }
    ExchangeDef exchange{.vhost = vhost,
                         .name = name,
                         .type = fields.text("type"),
                         .durable = fields.flag_or("durable", true),
                         .auto_delete = fields.flag_or("auto_delete", false),
                         .internal = fields.flag_or("internal", false),
                         .arguments = arguments_in(fields)};
    if (routing::ExchangeType type{}; !routing::parse_exchange_type(exchange.type, type)) {
      throw JsonMistake(fields.where() + ": exchange type " + in_quotes(exchange.type) +
                        " is not supported");
    }
    const std::string mistake = mistake_in_arguments(exchange);
    if (!mistake.empty()) throw JsonMistake(mistake);
    const Topology::Name key{vhost, name};
    if (!new_exchanges_.try_emplace(key, exchange.type).second) {
      throw JsonMistake(fields.where() + " appears twice");
    }
    const ExchangeDef* there = existing_.find_exchange(vhost, name);
    if (there == nullptr) {
      result_.exchanges.push_back(std::move(exchange));
    } else if (there->type != exchange.type || there->durable != exchange.durable ||
               there->auto_delete != exchange.auto_delete || there->internal != exchange.internal ||
               !wire::equivalent(there->arguments, exchange.arguments)) {
      ignore(fields.where(), "exists and is different; it stays as it is");
    }
  }

  void queue(const json::value& entry) {
    const JsonFields any(entry, "a queue");
    const std::string vhost = vhost_in(any);
    const std::string name = name_in(any, "name");
    const JsonFields fields(entry, queue_in_vhost(name, vhost));
    QueueSpec queue{.id = {},
                    .vhost = vhost,
                    .name = name,
                    .durable = fields.flag_or("durable", true),
                    .exclusive = false,
                    .auto_delete = fields.flag_or("auto_delete", false),
                    .arguments = arguments_in(fields)};
    const std::string mistake = mistake_in_arguments(queue);
    if (!mistake.empty()) throw JsonMistake(mistake);
    once(new_queues_, Topology::Name{vhost, name}, fields.where());
    const QueueDef* there = existing_.find_queue(vhost, name);
    if (there == nullptr) {
      result_.queues.push_back(std::move(queue));
    } else if (there->spec.durable != queue.durable || there->spec.exclusive ||
               there->spec.auto_delete != queue.auto_delete ||
               !wire::equivalent(there->spec.arguments, queue.arguments)) {
      ignore(fields.where(), "exists and is different; it stays as it is");
    }
  }

  // The type of an exchange, in the file or before it; empty: there is none.
  std::string exchange_type(const std::string& vhost, const std::string& name) const {
    if (const ExchangeDef* there = existing_.find_exchange(vhost, name)) return there->type;
    if (const auto added = new_exchanges_.find({vhost, name}); added != new_exchanges_.end()) {
      return added->second;
    }
    return {};
  }

  bool destination_exists(const BindingDef& binding) const {
    if (binding.destination_kind == DestinationKind::exchange) {
      return !exchange_type(binding.vhost, binding.destination).empty();
    }
    return existing_.find_queue(binding.vhost, binding.destination) != nullptr ||
           new_queues_.contains({binding.vhost, binding.destination});
  }

  void binding(const json::value& entry) {
    const JsonFields any(entry, "a binding");
    const std::string vhost = vhost_in(any);
    if (any.text("source").empty()) return;  // every queue has its binding to the default exchange
    const std::string source = name_in(any, "source");
    const std::string kind = any.text("destination_type");
    if (kind != "queue" && kind != "exchange") {
      any.fail("destination_type", "must be 'queue' or 'exchange'");
    }
    BindingDef binding{
        .vhost = vhost,
        .source = source,
        .destination_kind = kind == "queue" ? DestinationKind::queue : DestinationKind::exchange,
        .destination = name_in(any, "destination"),
        .routing_key = any.text_or("routing_key", ""),
        .arguments = {}};
    const JsonFields fields(entry, "binding from exchange " + in_quotes(source) + " to " + kind +
                                       " " + in_quotes(binding.destination) + " in vhost " +
                                       in_quotes(vhost));
    check_short(fields, "routing_key", binding.routing_key);
    binding.arguments = arguments_in(fields);
    const std::string type = exchange_type(vhost, source);
    if (type.empty()) throw JsonMistake(fields.where() + ": the exchange does not exist");
    if (!destination_exists(binding)) {
      throw JsonMistake(fields.where() + ": the " + kind + " does not exist");
    }
    if (type == "headers") {
      const std::string mistake = routing::check_headers_binding(binding.arguments);
      if (!mistake.empty()) throw JsonMistake(fields.where() + ": " + mistake);
    }
    // Equal bindings are one.
    if (existing_.has_binding(binding)) return;
    if (new_bindings_.insert(Topology::document_key(binding)).second) {
      result_.bindings.push_back(std::move(binding));
    }
  }

  const Topology& existing_;
  Definitions result_;
  std::set<std::string> new_vhosts_;
  std::set<std::string> new_users_;
  std::set<Topology::Name> new_permissions_;             // vhost, user
  std::map<Topology::Name, std::string> new_exchanges_;  // their types
  std::set<Topology::Name> new_queues_;
  std::set<std::string> new_bindings_;  // by document key
};

}  // namespace

Definitions parse_definitions(std::string_view text, const Topology& existing) {
  try {
    return DefinitionsParser(existing).parse(parse_json(text));
  } catch (const JsonMistake& mistake) {
    throw DefinitionsError(mistake.what());
  }
}

Definitions read_definitions(const std::filesystem::path& file, const Topology& existing) {
  try {
    return parse_definitions(read_whole_file(file), existing);
  } catch (const std::system_error& error) {
    throw DefinitionsError("definitions file '" + file.string() +
                           "' cannot be read: " + error.code().message());
  } catch (const DefinitionsError& error) {
    throw DefinitionsError("definitions file '" + file.string() + "': " + error.what());
  }
}

}  // namespace stoat::broker
