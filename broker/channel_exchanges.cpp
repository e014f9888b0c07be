// Class exchange: declare, delete, bind, unbind.

#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "broker/control.hpp"
#include "broker/decode.hpp"
#include "broker/equivalence.hpp"
#include "broker/queue_arguments.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
namespace exchange = wire::exchange;

constexpr std::string_view kReservedPrefix = "amq.";

BindingDef exchange_binding(const std::string& vhost, std::string_view source,
                            std::string_view destination, std::string_view routing_key,
                            const wire::Table& arguments) {
  return {vhost,
          std::string(source),
          DestinationKind::exchange,
          std::string(destination),
          std::string(routing_key),
          arguments};
}

}  // namespace

asio::awaitable<void> Channel::handle_exchange_method(wire::MethodId id, std::string_view payload) {
  if (id == exchange::Declare::kId) {
    co_await declare_exchange(decode_or_throw<exchange::Declare>(payload));
  } else if (id == exchange::Delete::kId) {
    co_await delete_exchange(decode_or_throw<exchange::Delete>(payload));
  } else if (id == exchange::Bind::kId) {
    co_await bind_exchange(decode_or_throw<exchange::Bind>(payload));
  } else if (id == exchange::Unbind::kId) {
    co_await unbind_exchange(decode_or_throw<exchange::Unbind>(payload));
  } else {
    throw_unknown_method(id);
  }
}

asio::awaitable<void> Channel::declare_exchange(const exchange::Declare& method) {
  constexpr wire::MethodId kMethod = exchange::Declare::kId;
  const bool no_wait = method.no_wait;
  const std::string name = method.exchange.str();
  if (method.passive) {
    if (!name.empty()) require_exchange(name, kMethod);
    if (!no_wait) reply(exchange::DeclareOk{});
    co_return;
  }
  check_name("exchange", name, kMethod);
  refuse_default_exchange(name, kMethod);
  ExchangeDef wanted{connection_.vhost().name, name,
                     method.type.str(),        method.durable,
                     method.auto_delete,       method.internal,
                     method.arguments};
  check_configure("exchange", name, kMethod);
  routing::ExchangeType type;
  if (!routing::parse_exchange_type(wanted.type, type)) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             "unknown exchange type '" + wanted.type + "'", kMethod);
  }
  check_exchange_arguments(wanted);
  if (const ExchangeDef* current = connection_.vhost().find_exchange(name)) {
    check_equivalent(*current, wanted);
    if (!no_wait) reply(exchange::DeclareOk{});
    co_return;
  }
  if (name.starts_with(kReservedPrefix)) {
    throw wire::ChannelError(ChannelErrorCode::access_refused,
                             "exchange name '" + name + "' contains reserved prefix 'amq.*'",
                             kMethod);
  }
  const std::string alternate = alternate_exchange_of(wanted);
  if (!alternate.empty()) {
    check_read("exchange", name, kMethod);
    check_write("exchange", alternate, kMethod);
  }
  Control& control = connection_.worker().control();
  co_await control.call(control.declare_exchange(std::move(wanted)));
  if (!no_wait) reply(exchange::DeclareOk{});
}

asio::awaitable<void> Channel::delete_exchange(const exchange::Delete& method) {
  constexpr wire::MethodId kMethod = exchange::Delete::kId;
  const bool no_wait = method.no_wait;
  const bool if_unused = method.if_unused;
  const std::string name = method.exchange.str();
  refuse_default_exchange(name, kMethod);
  if (name.starts_with(kReservedPrefix)) {
    throw wire::ChannelError(ChannelErrorCode::access_refused,
                             "exchange name '" + name + "' contains reserved prefix 'amq.*'",
                             kMethod);
  }
  check_configure("exchange", name, kMethod);
  Control& control = connection_.worker().control();
  co_await control.call(control.delete_exchange(connection_.vhost().name, name, if_unused));
  if (!no_wait) reply(exchange::DeleteOk{});
}

asio::awaitable<void> Channel::bind_exchange(const exchange::Bind& method) {
  constexpr wire::MethodId kMethod = exchange::Bind::kId;
  const bool no_wait = method.no_wait;
  refuse_default_exchange(method.destination, kMethod);
  refuse_default_exchange(method.source, kMethod);
  check_name("binding key", method.routing_key, kMethod);
  check_write("exchange", method.destination, kMethod);
  check_read("exchange", method.source, kMethod);
  BindingDef binding = exchange_binding(connection_.vhost().name, method.source, method.destination,
                                        method.routing_key, method.arguments);
  Control& control = connection_.worker().control();
  co_await control.call(control.bind(std::move(binding), connection_.id()));
  if (!no_wait) reply(exchange::BindOk{});
}

asio::awaitable<void> Channel::unbind_exchange(const exchange::Unbind& method) {
  constexpr wire::MethodId kMethod = exchange::Unbind::kId;
  const bool no_wait = method.no_wait;
  refuse_default_exchange(method.destination, kMethod);
  refuse_default_exchange(method.source, kMethod);
  check_write("exchange", method.destination, kMethod);
  check_read("exchange", method.source, kMethod);
  BindingDef binding = exchange_binding(connection_.vhost().name, method.source, method.destination,
                                        method.routing_key, method.arguments);
  Control& control = connection_.worker().control();
  co_await control.call(control.unbind(std::move(binding), connection_.id()));
  if (!no_wait) reply(exchange::UnbindOk{});
}

}  // namespace stoat::broker
