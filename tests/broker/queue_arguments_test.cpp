#include "broker/queue_arguments.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "broker/equivalence.hpp"
#include "broker/topology.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {
namespace {

using wire::FieldValue;
using wire::Table;

QueueSpec spec(Table arguments = {}) {
  QueueSpec queue;
  queue.vhost = "/";
  queue.name = "q";
  queue.durable = true;
  queue.arguments = std::move(arguments);
  return queue;
}

ExchangeDef exchange(Table arguments = {}) {
  return {"/", "x", "direct", true, false, false, std::move(arguments)};
}

// The reply text that the call leaves with; empty: it came back.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
    return {};
  } catch (const wire::ChannelError& error) {
    return error.text;
  }
}

TEST(QueueArguments, GoodOnesAreTaken) {
  const std::vector<std::pair<std::string, FieldValue>> cases = {
      {"x-message-ttl", std::int8_t{0}},
      {"x-message-ttl", kMaxExpiryMs},
      {"x-expires", std::uint8_t{1}},
      {"x-dead-letter-exchange", ""},
      {"x-max-length", std::uint16_t{0}},
      {"x-max-length-bytes", std::numeric_limits<std::int64_t>::max()},
      {"x-overflow", "drop-head"},
      {"x-overflow", "reject-publish"},
      {"x-overflow", "reject-publish-dlx"},
      {"x-max-priority", std::int32_t{0}},
      {"x-max-priority", std::uint8_t{255}},
      {"x-single-active-consumer", true},
      {"x-queue-type", "classic"},
      {"x-queue-type", "quorum"},
      {"x-queue-type", ""},
      {"x-queue-version", std::int32_t{2}},
      {"x-queue-mode", "lazy"},
      {"x-queue-mode", "default"},
      {"x-delivery-limit", std::int32_t{-1}},
      {"x-quorum-initial-group-size", std::int32_t{3}},
      {"x-queue-leader-locator", "balanced"},
      {"x-max-in-memory-length", std::int32_t{0}},
      {"x-consumer-timeout", std::int32_t{0}},
      {"x-of-somebody-else", Table{{"a", wire::Void{}}}},
      {"no-prefix", 1.5},
  };
  for (const auto& [key, value] : cases) {
    EXPECT_EQ(mistake_in_arguments(spec({{key, value}})), "") << key << " " << value.to_text();
  }
}

TEST(QueueArguments, BadOnesAreNamed) {
  const std::vector<std::pair<std::string, FieldValue>> cases = {
      {"x-message-ttl", std::int32_t{-1}},
      {"x-message-ttl", kMaxExpiryMs + 1},
      {"x-message-ttl", "1000"},
      {"x-message-ttl", 10.0},
      {"x-message-ttl", wire::Void{}},
      {"x-expires", std::int32_t{0}},
      {"x-expires", true},
      {"x-dead-letter-exchange", std::int32_t{1}},
      {"x-dead-letter-routing-key", "k"},  // without an exchange
      {"x-dead-letter-strategy", "perhaps"},
      {"x-max-length", std::int64_t{-1}},
      {"x-max-length-bytes", "10"},
      {"x-overflow", "drop-tail"},
      {"x-overflow", std::int32_t{0}},
      {"x-max-priority", std::int32_t{256}},
      {"x-max-priority", std::int64_t{1} << 31},
      {"x-max-priority", std::int32_t{-1}},
      {"x-max-priority", "5"},
      {"x-single-active-consumer", "true"},
      {"x-single-active-consumer", std::int32_t{1}},
      {"x-queue-type", "mirrored"},
      {"x-queue-type", "stream"},
      {"x-queue-type", true},
      {"x-queue-version", std::int32_t{3}},
      {"x-queue-mode", "eager"},
      {"x-delivery-limit", std::int32_t{-2}},
      {"x-delayed-retry-type", "all"},  // without a minimum
      {"x-quorum-initial-group-size", std::int32_t{0}},
      {"x-max-age", "7D"},
      {"x-stream-max-segment-size-bytes", std::int32_t{1}},
  };
  for (const auto& [key, value] : cases) {
    SCOPED_TRACE(key + " " + value.to_text());
    const std::string text = refusal([&] { check_queue_arguments(spec({{key, value}})); });
    EXPECT_TRUE(text.starts_with("PRECONDITION_FAILED - invalid arg '" + key +
                                 "' for queue 'q' in vhost '/': "))
        << text;
  }
}

TEST(QueueArguments, TextsSayWhatWasWrong) {
  EXPECT_EQ(mistake_in_arguments(spec({{"x-expires", std::int32_t{0}}})),
            "invalid arg 'x-expires' for queue 'q' in vhost '/': must be an integer from 1 to "
            "315360000000, not the value '0' of type 'signedint'");
  EXPECT_EQ(mistake_in_arguments(spec({{"x-overflow", "x"}})),
            "invalid arg 'x-overflow' for queue 'q' in vhost '/': must be one of 'drop-head' "
            "'reject-publish' 'reject-publish-dlx', not the value 'x' of type 'longstr'");
  EXPECT_EQ(mistake_in_arguments(spec({{"x-queue-type", "stream"}})),
            "invalid arg 'x-queue-type' for queue 'q' in vhost '/': this broker has no queues of "
            "type 'stream'");
}

TEST(QueueArguments, RulesBetweenArguments) {
  EXPECT_EQ(mistake_in_arguments(
                spec({{"x-dead-letter-exchange", "d"}, {"x-dead-letter-routing-key", "k"}})),
            "");
  const Table good{{"x-delayed-retry-type", "failed"},
                   {"x-delayed-retry-min", std::int32_t{10}},
                   {"x-delayed-retry-max", std::int64_t{10}}};
  EXPECT_EQ(mistake_in_arguments(spec(good)), "");
  Table less = good;
  less.set("x-delayed-retry-max", std::int32_t{9});
  EXPECT_NE(mistake_in_arguments(spec(less)), "");
  EXPECT_EQ(mistake_in_arguments(spec({{"x-delayed-retry-type", "disabled"}})), "");
}

TEST(QueueArguments, AQuorumQueueIsDurableNamedAndShared) {
  const Table quorum{{"x-queue-type", "quorum"}};
  QueueSpec transient = spec(quorum);
  transient.durable = false;
  QueueSpec exclusive = spec(quorum);
  exclusive.exclusive = true;
  QueueSpec auto_delete = spec(quorum);
  auto_delete.auto_delete = true;
  QueueSpec unnamed = spec(quorum);
  unnamed.name.clear();
  const std::pair<QueueSpec, std::string> cases[] = {{transient, "non-durable"},
                                                     {exclusive, "exclusive"},
                                                     {auto_delete, "auto-delete"},
                                                     {unnamed, "server-named"}};
  for (const auto& [queue, property] : cases) {
    const std::string text = refusal([&, &q = queue] { check_queue_arguments(q); });
    EXPECT_TRUE(text.starts_with("PRECONDITION_FAILED - invalid property '" + property + "'"))
        << text;
  }
}

TEST(ExchangeArguments, AlternateExchangeIsAName) {
  EXPECT_EQ(mistake_in_arguments(exchange({{"alternate-exchange", "ae"}, {"x-else", true}})), "");
  EXPECT_EQ(refusal([] {
              check_exchange_arguments(exchange({{"alternate-exchange", true}}));
            }),
            "PRECONDITION_FAILED - invalid arg 'alternate-exchange' for exchange 'x' in vhost '/': "
            "must be a longstr, not the value 'true' of type 'bool'");
}

TEST(ConsumeArguments, PriorityIsAnyInteger) {
  const auto priority = [](Table arguments) {
    return check_consume_arguments(arguments, "q", "/");
  };
  EXPECT_EQ(priority({}), 0);
  EXPECT_EQ(priority({{"x-else", "a"}}), 0);
  EXPECT_EQ(priority({{"x-priority", std::int8_t{-5}}}), -5);
  EXPECT_EQ(priority({{"x-priority", std::int64_t{1} << 40}}),
            std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(priority({{"x-priority", -(std::int64_t{1} << 40)}}),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(refusal([&] {
              priority({{"x-priority", "5"}});
            }),
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': must be an "
            "integer, not the value '5' of type 'longstr'");
}

// --- equivalence ---

std::string redeclare(const QueueSpec& current, const QueueSpec& declared) {
  return refusal([&] { check_equivalent(current, declared); });
}

TEST(Equivalence, QueueProperties) {
  QueueSpec transient = spec();
  transient.durable = false;
  QueueSpec auto_delete = spec();
  auto_delete.auto_delete = true;
  QueueSpec exclusive = spec();
  exclusive.exclusive = true;
  exclusive.durable = false;
  EXPECT_EQ(redeclare(spec(), spec()), "");
  EXPECT_EQ(redeclare(transient, spec()),
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received "
            "'true' but current is 'false'");
  EXPECT_EQ(redeclare(spec(), auto_delete),
            "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': "
            "received 'true' but current is 'false'");
  EXPECT_TRUE(redeclare(spec(), exclusive)
                  .starts_with("RESOURCE_LOCKED - cannot obtain exclusive access to locked queue "
                               "'q' in vhost '/'"));
}

TEST(Equivalence, ArgumentsAreComparedByValue) {
  const QueueSpec ten = spec({{"x-max-length", std::int8_t{10}}, {"x-overflow", "drop-head"}});
  EXPECT_EQ(redeclare(ten, spec({{"x-overflow", "drop-head"}, {"x-max-length", std::int64_t{10}}})),
            "");
  EXPECT_EQ(
      redeclare(ten, spec({{"x-max-length", std::uint32_t{10}}, {"x-overflow", "drop-head"}})), "");
  const std::string prefix =
      "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received ";
  struct {
    Table declared;
    std::string text;
  } const cases[] = {
      {{{"x-max-length", std::int32_t{11}}, {"x-overflow", "drop-head"}},
       prefix + "'11' but current is '10'"},
      {{{"x-max-length", "10"}, {"x-overflow", "drop-head"}},
       prefix + "the value '10' of type 'longstr' but current is the value '10' of type 'byte'"},
      {{{"x-overflow", "drop-head"}}, prefix + "none but current is the value '10' of type 'byte'"},
  };
  for (const auto& c : cases) EXPECT_EQ(redeclare(ten, spec(c.declared)), c.text);
}

TEST(Equivalence, AbsentAndVoidAreDifferent) {
  EXPECT_EQ(redeclare(spec(), spec({{"x-max-length", std::int32_t{5}}})),
            "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
            "received the value '5' of type 'signedint' but current is none");
  EXPECT_NE(redeclare(spec({{"x-foo", wire::Void{}}}), spec({{"x-bar", "a"}})), "");
  EXPECT_NE(redeclare(spec(), spec({{"x-foo", wire::Void{}}})), "");
  EXPECT_NE(redeclare(spec({{"x-foo", wire::Void{}}}), spec()), "");
}

TEST(Equivalence, ExchangeProperties) {
  ExchangeDef topic = exchange();
  topic.type = "topic";
  ExchangeDef transient = exchange();
  transient.durable = false;
  ExchangeDef internal = exchange();
  internal.internal = true;
  const ExchangeDef with_alternate = exchange({{"alternate-exchange", "ae"}});
  const auto declare = [](const ExchangeDef& declared) {
    return refusal([&] { check_equivalent(exchange(), declared); });
  };
  EXPECT_EQ(declare(exchange()), "");
  EXPECT_EQ(declare(topic),
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received "
            "'topic' but current is 'direct'");
  EXPECT_EQ(declare(transient),
            "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': "
            "received 'false' but current is 'true'");
  EXPECT_EQ(declare(internal),
            "PRECONDITION_FAILED - inequivalent arg 'internal' for exchange 'x' in vhost '/': "
            "received 'true' but current is 'false'");
  EXPECT_EQ(declare(with_alternate),
            "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost "
            "'/': received the value 'ae' of type 'longstr' but current is none");
}

}  // namespace
}  // namespace stoat::broker
