#pragma once

#include <string>
#include <string_view>

#include "wire/field_value.hpp"

namespace stoat::broker {

struct ExchangeDef;
struct QueueSpec;

// A redeclare must ask for what is there: durable, auto_delete, exclusive (or type and internal)
// and every argument, by value. Throws wire::ChannelError: 406, or 405 where `exclusive` differs.
void check_equivalent(const QueueSpec& current, const QueueSpec& declared);
void check_equivalent(const ExchangeDef& current, const ExchangeDef& declared);

// "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received the value '5' of type
// 'signedint' but current is none"; `resource` as from queue_in_vhost().
std::string inequivalent_text(std::string_view argument, std::string_view resource,
                              const wire::FieldValue* received, const wire::FieldValue* current);
std::string inequivalent_text(std::string_view argument, std::string_view resource,
                              std::string_view received, std::string_view current);

}  // namespace stoat::broker
