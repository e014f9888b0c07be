#include "broker/equivalence.hpp"

#include "broker/queue_arguments.hpp"
#include "broker/topology.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {
namespace {

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string with_type(const wire::FieldValue* value) {
  if (value == nullptr) return "none";
  return "the value " + in_quotes(value->to_text()) + " of type " + in_quotes(value->type_name());
}

bool same_class(const wire::FieldValue& a, const wire::FieldValue& b) {
  return (a.is_integer() && b.is_integer()) || a.value.index() == b.value.index();
}

[[noreturn]] void refuse(std::string_view text) {
  throw wire::ChannelError(wire::ChannelErrorCode::precondition_failed, text);
}

void compare(std::string_view argument, std::string_view resource, std::string_view current,
             std::string_view declared) {
  if (current != declared) refuse(inequivalent_text(argument, resource, declared, current));
}

void compare(std::string_view argument, std::string_view resource, bool current, bool declared) {
  compare(argument, resource, std::string_view(current ? "true" : "false"),
          std::string_view(declared ? "true" : "false"));
}

void compare(std::string_view resource, const wire::Table& current, const wire::Table& declared) {
  if (wire::equivalent(current, declared)) return;
  for (const auto* table : {&declared, &current}) {
    for (const auto& [key, ignored] : table->entries()) {
      const wire::FieldValue* mine = current.find(key);
      const wire::FieldValue* theirs = declared.find(key);
      if (mine == nullptr || theirs == nullptr || !wire::equivalent(*mine, *theirs)) {
        refuse(inequivalent_text(key, resource, theirs, mine));
      }
    }
  }
}

}  // namespace

std::string inequivalent_text(std::string_view argument, std::string_view resource,
                              std::string_view received, std::string_view current) {
  return "inequivalent arg " + in_quotes(argument) + " for " + std::string(resource) +
         ": received " + in_quotes(received) + " but current is " + in_quotes(current);
}

std::string inequivalent_text(std::string_view argument, std::string_view resource,
                              const wire::FieldValue* received, const wire::FieldValue* current) {
  if (received != nullptr && current != nullptr && same_class(*received, *current)) {
    return inequivalent_text(argument, resource, received->to_text(), current->to_text());
  }
  return "inequivalent arg " + in_quotes(argument) + " for " + std::string(resource) +
         ": received " + with_type(received) + " but current is " + with_type(current);
}

void check_equivalent(const QueueSpec& current, const QueueSpec& declared) {
  const std::string resource = queue_in_vhost(current.name, current.vhost);
  if (current.exclusive != declared.exclusive) {
    throw wire::ChannelError(
        wire::ChannelErrorCode::resource_locked,
        "cannot obtain exclusive access to locked " + resource +
            ". It could be originally declared on another connection or the exclusive property "
            "value does not match that of the original declaration.");
  }
  compare("durable", resource, current.durable, declared.durable);
  compare("auto_delete", resource, current.auto_delete, declared.auto_delete);
  compare(resource, current.arguments, declared.arguments);
}

void check_equivalent(const ExchangeDef& current, const ExchangeDef& declared) {
  const std::string resource = exchange_in_vhost(current.name, current.vhost);
  compare("type", resource, std::string_view(current.type), std::string_view(declared.type));
  compare("durable", resource, current.durable, declared.durable);
  compare("auto_delete", resource, current.auto_delete, declared.auto_delete);
  compare("internal", resource, current.internal, declared.internal);
  compare(resource, current.arguments, declared.arguments);
}

}  // namespace stoat::broker
