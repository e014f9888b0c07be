#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/field_value.hpp"

namespace stoat::broker {

struct ExchangeDef;
struct QueueSpec;

// Checks of what a declare or consume asks for. Known arguments are checked for type and range;
// unknown ones are accepted and kept. Integers may be of any of AMQP's integer types.
//
// The functions that throw leave with wire::ChannelError 406. The text names queue or exchange, the
// argument and what is wrong with it.

// x-message-ttl and x-expires reach this far: ten years.
inline constexpr std::int64_t kMaxExpiryMs = 315'360'000'000;

// "queue 'q' in vhost '/'", as reply texts name things.
std::string queue_in_vhost(std::string_view queue, std::string_view vhost);
std::string exchange_in_vhost(std::string_view exchange, std::string_view vhost);

// Of queue.declare: arguments, and the properties that an x-queue-type of quorum asks for.
// An empty spec.name is a queue that the server is to name.
void check_queue_arguments(const QueueSpec& spec);
// Of exchange.declare.
void check_exchange_arguments(const ExchangeDef& exchange);
// Of basic.consume. Answers x-priority, 0 where there is none, drawn into the range of 32 bits.
std::int32_t check_consume_arguments(const wire::Table& arguments, std::string_view queue,
                                     std::string_view vhost);

// The same as text, for what does not come from a channel: empty when nothing is wrong.
std::string mistake_in_arguments(const QueueSpec& spec);
std::string mistake_in_arguments(const ExchangeDef& exchange);

}  // namespace stoat::broker
