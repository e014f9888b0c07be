#include "broker/queue_arguments.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "broker/topology.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

struct Integer {
  std::int64_t min;
  std::int64_t max = kAny;
};
struct Boolean {};
struct AnyText {};
struct OneOf {
  std::span<const std::string_view> values;
};
struct StreamsOnly {};  // known, but to a kind of queue that is not here

struct Rule {
  std::string_view argument;
  std::variant<Integer, Boolean, AnyText, OneOf, StreamsOnly> kind;
};

constexpr std::array<std::string_view, 3> kOverflows{"drop-head", "reject-publish",
                                                     "reject-publish-dlx"};
constexpr std::array<std::string_view, 3> kQueueTypes{"classic", "quorum", ""};
constexpr std::array<std::string_view, 2> kQueueModes{"default", "lazy"};
constexpr std::array<std::string_view, 2> kDeadLetterStrategies{"at-most-once", "at-least-once"};
constexpr std::array<std::string_view, 4> kRetryTypes{"disabled", "all", "failed", "returned"};

const Rule kQueueRules[] = {
    {"x-message-ttl", Integer{0, kMaxExpiryMs}},
    {"x-expires", Integer{1, kMaxExpiryMs}},
    {"x-dead-letter-exchange", AnyText{}},
    {"x-dead-letter-routing-key", AnyText{}},
    {"x-dead-letter-strategy", OneOf{kDeadLetterStrategies}},
    {"x-max-length", Integer{0}},
    {"x-max-length-bytes", Integer{0}},
    {"x-overflow", OneOf{kOverflows}},
    {"x-max-priority", Integer{0, 255}},
    {"x-single-active-consumer", Boolean{}},
    {"x-queue-type", OneOf{kQueueTypes}},
    {"x-queue-version", Integer{1, 2}},
    {"x-queue-mode", OneOf{kQueueModes}},
    {"x-delivery-limit", Integer{-1}},
    {"x-delayed-retry-type", OneOf{kRetryTypes}},
    {"x-delayed-retry-min", Integer{0, kMaxExpiryMs}},
    {"x-delayed-retry-max", Integer{0, kMaxExpiryMs}},
    {"x-consumer-timeout", Integer{0}},
    {"x-consumer-disconnected-timeout", Integer{0}},
    {"x-quorum-initial-group-size", Integer{1}},
    {"x-quorum-target-group-size", Integer{1}},
    {"x-queue-leader-locator", AnyText{}},
    {"x-queue-master-locator", AnyText{}},
    {"x-max-in-memory-length", Integer{0}},
    {"x-max-in-memory-bytes", Integer{0}},
    {"x-max-age", StreamsOnly{}},
    {"x-stream-max-segment-size-bytes", StreamsOnly{}},
    {"x-stream-filter-size-bytes", StreamsOnly{}},
    {"x-initial-cluster-size", StreamsOnly{}},
};

const Rule kExchangeRules[] = {
    {"alternate-exchange", AnyText{}},
};

const Rule kConsumeRules[] = {
    {"x-priority", Integer{std::numeric_limits<std::int64_t>::min()}},
    {"x-consumer-timeout", Integer{0}},
};

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string not_this(const wire::FieldValue& value) {
  return ", not the value " + in_quotes(value.to_text()) + " of type " +
         in_quotes(value.type_name());
}

// What each kind of rule says of a value; empty: fine.
std::string mistake(Integer rule, const wire::FieldValue& value) {
  if (value.is_integer() && value.as_integer() >= rule.min && value.as_integer() <= rule.max) {
    return {};
  }
  std::string must = "must be an integer";
  if (rule.max != kAny) {
    must += " from " + std::to_string(rule.min) + " to " + std::to_string(rule.max);
  } else if (rule.min != std::numeric_limits<std::int64_t>::min()) {
    must += " of at least " + std::to_string(rule.min);
  }
  return must + not_this(value);
}

std::string mistake(Boolean, const wire::FieldValue& value) {
  return value.as_bool() != nullptr ? std::string() : "must be a bool" + not_this(value);
}

std::string mistake(AnyText, const wire::FieldValue& value) {
  return value.as_string() != nullptr ? std::string() : "must be a longstr" + not_this(value);
}

std::string mistake(OneOf rule, const wire::FieldValue& value) {
  const std::string* text = value.as_string();
  if (text != nullptr &&
      std::find(rule.values.begin(), rule.values.end(), *text) != rule.values.end()) {
    return {};
  }
  std::string must = "must be one of";
  for (const std::string_view allowed : rule.values) {
    if (!allowed.empty()) must += " " + in_quotes(allowed);
  }
  return must + not_this(value);
}

std::string mistake(StreamsOnly, const wire::FieldValue&) {
  return "is for queues of type 'stream', which this broker does not have";
}

std::string invalid_arg(std::string_view argument, std::string_view resource,
                        std::string_view what) {
  return "invalid arg " + in_quotes(argument) + " for " + std::string(resource) + ": " +
         std::string(what);
}

// The first rule that is broken, as a whole text; empty: none is.
std::string first_mistake(std::span<const Rule> rules, const wire::Table& arguments,
                          std::string_view resource) {
  if (arguments.empty()) return {};
  for (const Rule& rule : rules) {
    const wire::FieldValue* value = arguments.find(rule.argument);
    if (value == nullptr) continue;
    const std::string what =
        std::visit([value](const auto& kind) { return mistake(kind, *value); }, rule.kind);
    if (!what.empty()) return invalid_arg(rule.argument, resource, what);
  }
  return {};
}

bool is_text(const wire::Table& arguments, std::string_view key, std::string_view text) {
  const wire::FieldValue* value = arguments.find(key);
  return value != nullptr && value->as_string() != nullptr && *value->as_string() == text;
}

// Rules between arguments. REQUIRES: each by itself is fine.
std::string mistake_between(const wire::Table& arguments, std::string_view resource) {
  const auto has = [&](std::string_view key) { return arguments.find(key) != nullptr; };
  if (has("x-dead-letter-routing-key") && !has("x-dead-letter-exchange")) {
    return invalid_arg("x-dead-letter-routing-key", resource,
                       "there is no 'x-dead-letter-exchange'");
  }
  const bool retries =
      has("x-delayed-retry-type") && !is_text(arguments, "x-delayed-retry-type", "disabled");
  const wire::FieldValue* min = arguments.find("x-delayed-retry-min");
  const wire::FieldValue* max = arguments.find("x-delayed-retry-max");
  if (retries && min == nullptr) {
    return invalid_arg("x-delayed-retry-type", resource, "there is no 'x-delayed-retry-min'");
  }
  if (min != nullptr && max != nullptr && max->as_integer() < min->as_integer()) {
    return invalid_arg("x-delayed-retry-max", resource, "is less than 'x-delayed-retry-min'");
  }
  return {};
}

// What RabbitMQ's quorum queues must be is asked for here too, so that a declare means the same.
std::string mistake_in_quorum(const QueueSpec& spec, std::string_view resource) {
  if (!is_text(spec.arguments, "x-queue-type", "quorum")) return {};
  const char* property = nullptr;
  if (!spec.durable) property = "non-durable";
  if (spec.auto_delete) property = "auto-delete";
  if (spec.exclusive) property = "exclusive";
  if (spec.name.empty()) property = "server-named";
  if (property == nullptr) return {};
  return "invalid property " + in_quotes(property) + " for " + std::string(resource) +
         ": not with 'x-queue-type' 'quorum'";
}

[[noreturn]] void refuse(std::string_view text) {
  throw wire::ChannelError(wire::ChannelErrorCode::precondition_failed, text);
}

}  // namespace

std::string queue_in_vhost(std::string_view queue, std::string_view vhost) {
  return "queue " + in_quotes(queue) + " in vhost " + in_quotes(vhost);
}

std::string exchange_in_vhost(std::string_view exchange, std::string_view vhost) {
  return "exchange " + in_quotes(exchange) + " in vhost " + in_quotes(vhost);
}

std::string mistake_in_arguments(const QueueSpec& spec) {
  const std::string resource = queue_in_vhost(spec.name, spec.vhost);
  if (is_text(spec.arguments, "x-queue-type", "stream")) {
    return invalid_arg("x-queue-type", resource, "this broker has no queues of type 'stream'");
  }
  std::string text = first_mistake(kQueueRules, spec.arguments, resource);
  if (text.empty()) text = mistake_between(spec.arguments, resource);
  if (text.empty()) text = mistake_in_quorum(spec, resource);
  return text;
}

std::string mistake_in_arguments(const ExchangeDef& exchange) {
  return first_mistake(kExchangeRules, exchange.arguments,
                       exchange_in_vhost(exchange.name, exchange.vhost));
}

void check_queue_arguments(const QueueSpec& spec) {
  if (const std::string text = mistake_in_arguments(spec); !text.empty()) refuse(text);
}

void check_exchange_arguments(const ExchangeDef& exchange) {
  if (const std::string text = mistake_in_arguments(exchange); !text.empty()) refuse(text);
}

std::int32_t check_consume_arguments(const wire::Table& arguments, std::string_view queue,
                                     std::string_view vhost) {
  if (arguments.empty()) return 0;
  const std::string text = first_mistake(kConsumeRules, arguments, queue_in_vhost(queue, vhost));
  if (!text.empty()) refuse(text);
  const wire::FieldValue* priority = arguments.find("x-priority");
  if (priority == nullptr) return 0;
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(priority->as_integer(), Limits::min(), Limits::max()));
}

}  // namespace stoat::broker
