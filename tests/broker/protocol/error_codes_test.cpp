// One table of what goes wrong with one method: code, scope and text. Frames out of order are in
// frame_error_test.cpp, logins in handshake_test.cpp, inequivalent declares in
// equivalence_test.cpp.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

struct Names {
  std::string q;        // a queue that exists and is empty
  std::string x;        // a direct exchange that exists
  std::string missing;  // neither
};

enum class Scope { channel, connection };

struct ErrorCase {
  const char* name;
  void (*provoke)(WireClient&, const Names&);
  Scope scope;
  std::uint16_t code;
  // The whole text with {q}, {x}, {missing} for the names; empty: any after the code's name.
  const char* text = "";
  // Why another broker may answer otherwise; nullptr: RabbitMQ answers the same.
  const char* own_choice = nullptr;
};

void PrintTo(const ErrorCase& c, std::ostream* out) {
  *out << c.name;
}

std::string filled(std::string text, const Names& names) {
  for (const auto& [hole, name] : {std::pair{"{q}"sv, &names.q}, std::pair{"{x}"sv, &names.x},
                                   std::pair{"{missing}"sv, &names.missing}}) {
    for (auto at = text.find(hole); at != std::string::npos; at = text.find(hole))
      text.replace(at, hole.size(), *name);
  }
  return text;
}

class ErrorCodes : public ProtocolTest, public testing::WithParamInterface<ErrorCase> {};

TEST_P(ErrorCodes, CodeScopeAndText) {
  const ErrorCase& c = GetParam();
  if (c.own_choice != nullptr) {
    STOAT_OWN_CHOICE(c.own_choice);
  }
  WireClient client = connect();
  const Names names{queue(), exchange(), name("missing")};
  client.declare_queue(1, names.q);
  client.declare_exchange(1, names.x, "direct");
  client.open_channel(2);
  c.provoke(client, names);
  if (c.scope == Scope::connection) {
    const std::string text = client.expect_connection_close(c.code);
    if (*c.text != '\0') {
      EXPECT_EQ(text, filled(c.text, names));
    }
    return;
  }
  const auto close = client.expect<channel::Close>(2);
  EXPECT_EQ(close.reply_code, c.code) << close.reply_text.text;
  if (*c.text != '\0') {
    EXPECT_EQ(close.reply_text.text, filled(c.text, names));
  }
  EXPECT_NE(close.class_id, 0) << "the method that failed is named";
  client.send(2, channel::CloseOk{});
  // The channel alone is gone, and its number is free.
  client.open_channel(2);
  EXPECT_EQ(client.ready_count(1, names.q), 0u);
}

void publish_to(WireClient& client, std::string_view exchange, const Properties& properties = {}) {
  client.publish(2, exchange, "k", "body", properties);
}

void declare(WireClient& client, std::string_view queue, const Table& arguments = {}) {
  client.send(2, queue::Declare{0, queue, false, false, false, false, false, arguments});
}

void declare_exchange(WireClient& client, std::string_view exchange, std::string_view type) {
  client.send(2, exchange::Declare{0, exchange, type, false, false, false, false, false, {}});
}

using C = WireClient&;
using N = const Names&;
constexpr Scope kChannel = Scope::channel;
constexpr Scope kConnection = Scope::connection;

const ErrorCase kNotFound[] = {
    {"PublishToAMissingExchange", [](C c, N n) { publish_to(c, n.missing); }, kChannel, 404,
     "NOT_FOUND - no exchange '{missing}' in vhost '/'"},
    {"ConsumeFromAMissingQueue",
     [](C c, N n) {
       c.send(2, basic::Consume{0, n.missing, "", false, false, false, false, {}});
     },
     kChannel, 404, "NOT_FOUND - no queue '{missing}' in vhost '/'"},
    {"GetFromAMissingQueue",
     [](C c, N n) {
       c.send(2, basic::Get{0, n.missing, true});
     },
     kChannel, 404, "NOT_FOUND - no queue '{missing}' in vhost '/'"},
    {"PurgeOfAMissingQueue",
     [](C c, N n) {
       c.send(2, queue::Purge{0, n.missing, false});
     },
     kChannel, 404, "NOT_FOUND - no queue '{missing}' in vhost '/'"},
    {"BindOfAMissingQueue",
     [](C c, N n) {
       c.send(2, queue::Bind{0, n.missing, n.x, "k", false, {}});
     },
     kChannel, 404, "NOT_FOUND - no queue '{missing}' in vhost '/'"},
    {"BindToAMissingExchange",
     [](C c, N n) {
       c.send(2, queue::Bind{0, n.q, n.missing, "k", false, {}});
     },
     kChannel, 404, "NOT_FOUND - no exchange '{missing}' in vhost '/'"},
    {"BindOfAMissingExchange",
     [](C c, N n) {
       c.send(2, exchange::Bind{0, n.missing, n.x, "k", false, {}});
     },
     kChannel, 404, "NOT_FOUND - no exchange '{missing}' in vhost '/'"},
    {"BindToAMissingSource",
     [](C c, N n) {
       c.send(2, exchange::Bind{0, n.x, n.missing, "k", false, {}});
     },
     kChannel, 404, "NOT_FOUND - no exchange '{missing}' in vhost '/'"},
    {"PassiveDeclareOfAMissingExchange",
     [](C c, N n) {
       c.send(2, exchange::Declare{0, n.missing, "direct", true, false, false, false, false, {}});
     },
     kChannel, 404, "NOT_FOUND - no exchange '{missing}' in vhost '/'"},
    {"NoQueueDeclaredForTheEmptyName",
     [](C c, N) {
       c.send(2, basic::Get{0, "", true});
     },
     kChannel, 404},
};
INSTANTIATE_TEST_SUITE_P(NotFound, ErrorCodes, testing::ValuesIn(kNotFound),
                         [](const auto& c) { return std::string(c.param.name); });

const ErrorCase kRefused[] = {
    {"ReservedQueueName", [](C c, N) { declare(c, "amq.mine"); }, kChannel, 403,
     "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"},
    {"ReservedExchangeName", [](C c, N) { declare_exchange(c, "amq.mine", "direct"); }, kChannel,
     403, "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"},
    {"DeclareOfTheDefaultExchange", [](C c, N) { declare_exchange(c, "", "direct"); }, kChannel,
     403, "ACCESS_REFUSED - operation not permitted on the default exchange"},
    {"DeleteOfTheDefaultExchange",
     [](C c, N) {
       c.send(2, exchange::Delete{0, "", false, false});
     },
     kChannel, 403, "ACCESS_REFUSED - operation not permitted on the default exchange"},
    {"BindToTheDefaultExchange",
     [](C c, N n) {
       c.send(2, queue::Bind{0, n.q, "", "k", false, {}});
     },
     kChannel, 403, "ACCESS_REFUSED - operation not permitted on the default exchange"},
    {"UnbindFromTheDefaultExchange",
     [](C c, N n) {
       c.send(2, queue::Unbind{0, n.q, "", n.q, {}});
     },
     kChannel, 403, "ACCESS_REFUSED - operation not permitted on the default exchange"},
    {"ExchangeBoundToTheDefaultOne",
     [](C c, N n) {
       c.send(2, exchange::Bind{0, n.x, "", "k", false, {}});
     },
     kChannel, 403},
    {"DefaultExchangeBoundToAnother",
     [](C c, N n) {
       c.send(2, exchange::Bind{0, "", n.x, "k", false, {}});
     },
     kChannel, 403},
    {"DeleteOfAPredeclaredExchange",
     [](C c, N) {
       c.send(2, exchange::Delete{0, "amq.direct", false, false});
     },
     kChannel, 403},
    {"PublishToAnInternalExchange",
     [](C c, N n) {
       c.delete_exchange(1, n.x);
       c.call<exchange::DeclareOk>(
           1, exchange::Declare{0, n.x, "fanout", false, false, false, true, false, {}});
       publish_to(c, n.x);
     },
     kChannel, 403, "ACCESS_REFUSED - cannot publish to internal exchange '{x}' in vhost '/'"},
    {"ConsumeBesideAnExclusiveConsumer",
     [](C c, N n) {
       c.call<basic::ConsumeOk>(1, basic::Consume{0, n.q, "t", false, false, true, false, {}});
       c.send(2, basic::Consume{0, n.q, "t", false, false, false, false, {}});
     },
     kChannel, 403, "ACCESS_REFUSED - queue '{q}' in vhost '/' in exclusive use"},
};
INSTANTIATE_TEST_SUITE_P(Refused, ErrorCodes, testing::ValuesIn(kRefused),
                         [](const auto& c) { return std::string(c.param.name); });

const char* const kOwnValidation = "arguments are validated more strictly, or for more types";

const ErrorCase kPrecondition[] = {
    {"UnknownExchangeType", [](C c, N n) { declare_exchange(c, n.missing, "what"); }, kChannel, 406,
     "PRECONDITION_FAILED - unknown exchange type 'what'", "RabbitMQ before 3.13 answers 503"},
    {"UnknownDeliveryTag", [](C c, N) { c.ack(2, 99); }, kChannel, 406,
     "PRECONDITION_FAILED - unknown delivery tag 99"},
    {"TtlThatIsText",
     [](C c, N n) {
       declare(c, n.missing, {{"x-message-ttl", "5"}});
     },
     kChannel, 406},
    {"TtlBelowZero",
     [](C c, N n) {
       declare(c, n.missing, {{"x-message-ttl", -1}});
     },
     kChannel, 406},
    {"TtlAboveTenYears",
     [](C c, N n) {
       declare(c, n.missing, {{"x-message-ttl", std::int64_t{315360000001}}});
     },
     kChannel, 406},
    {"ExpiresZero",
     [](C c, N n) {
       declare(c, n.missing, {{"x-expires", 0}});
     },
     kChannel, 406},
    {"MaxLengthBelowZero",
     [](C c, N n) {
       declare(c, n.missing, {{"x-max-length", -1}});
     },
     kChannel, 406},
    {"MaxLengthBytesThatIsText",
     [](C c, N n) {
       declare(c, n.missing, {{"x-max-length-bytes", "1"}});
     },
     kChannel, 406},
    {"MaxPriorityAbove255",
     [](C c, N n) {
       declare(c, n.missing, {{"x-max-priority", 256}});
     },
     kChannel, 406},
    {"MaxPriorityBelowZero",
     [](C c, N n) {
       declare(c, n.missing, {{"x-max-priority", -1}});
     },
     kChannel, 406},
    {"UnknownOverflow",
     [](C c, N n) {
       declare(c, n.missing, {{"x-overflow", "spill"}});
     },
     kChannel, 406},
    {"DeadLetterExchangeThatIsANumber",
     [](C c, N n) {
       declare(c, n.missing, {{"x-dead-letter-exchange", 1}});
     },
     kChannel, 406},
    {"DeadLetterRoutingKeyAlone",
     [](C c, N n) {
       declare(c, n.missing, {{"x-dead-letter-routing-key", "k"}});
     },
     kChannel, 406},
    {"SingleActiveThatIsANumber",
     [](C c, N n) {
       declare(c, n.missing, {{"x-single-active-consumer", 1}});
     },
     kChannel, 406},
    {"UnknownQueueType",
     [](C c, N n) {
       declare(c, n.missing, {{"x-queue-type", "heap"}});
     },
     kChannel, 406},
    {"UnknownQueueMode",
     [](C c, N n) {
       declare(c, n.missing, {{"x-queue-mode", "busy"}});
     },
     kChannel, 406},
    {"StreamQueueType",
     [](C c, N n) {
       declare(c, n.missing, {{"x-queue-type", "stream"}});
     },
     kChannel, 406, "", "it has no streams"},
    {"DeliveryLimitThatIsText",
     [](C c, N n) {
       declare(c, n.missing, {{"x-delivery-limit", "many"}});
     },
     kChannel, 406, "", kOwnValidation},
    {"QueueNameWithALineBreak", [](C c, N) { declare(c, "two\nlines"); }, kChannel, 406, "",
     "line breaks in names are refused, not stripped"},
    {"ExchangeNameWithACarriageReturn", [](C c, N) { declare_exchange(c, "two\rlines", "direct"); },
     kChannel, 406, "", "line breaks in names are refused, not stripped"},
    {"CommitWithoutSelect", [](C c, N) { c.send(2, tx::Commit{}); }, kChannel, 406},
    {"RollbackWithoutSelect", [](C c, N) { c.send(2, tx::Rollback{}); }, kChannel, 406},
    {"ReplyConsumerThatAcknowledges",
     [](C c, N) {
       c.send(2, basic::Consume{0, "amq.rabbitmq.reply-to", "", false, false, false, false, {}});
     },
     kChannel, 406, "PRECONDITION_FAILED - reply consumer cannot acknowledge"},
    {"ReplyToWithoutAConsumer",
     [](C c, N) {
       Properties properties;
       properties.reply_to = "amq.rabbitmq.reply-to";
       publish_to(c, "", properties);
     },
     kChannel, 406, "PRECONDITION_FAILED - fast reply consumer does not exist"},
};
INSTANTIATE_TEST_SUITE_P(Precondition, ErrorCodes, testing::ValuesIn(kPrecondition),
                         [](const auto& c) { return std::string(c.param.name); });

const ErrorCase kHard[] = {
    {"ImmediatePublish",
     [](C c, N n) {
       c.send(2, basic::Publish{0, "", n.q, false, true});
       c.send_content(2, "\0\0"sv, "body");
     },
     kConnection, 540},
    {"PrefetchSize",
     [](C c, N) {
       c.send(2, basic::Qos{1, 0, false});
     },
     kConnection, 540},
    {"ReusedConsumerTag",
     [](C c, N n) {
       c.consume(2, n.q, "t");
       c.send(2, basic::Consume{0, n.q, "t", false, false, false, false, {}});
     },
     kConnection, 530, "NOT_ALLOWED - attempt to reuse consumer tag 't'"},
    {"SecondChannelOpen", [](C c, N) { c.send(2, channel::Open{}); }, kConnection, 504,
     "CHANNEL_ERROR - second 'channel.open' seen"},
    {"MethodOnAChannelThatIsNotOpen",
     [](C c, N n) {
       c.send(3, queue::Purge{0, n.q, false});
     },
     kConnection, 504},
};
INSTANTIATE_TEST_SUITE_P(Hard, ErrorCodes, testing::ValuesIn(kHard),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace stoat::test
