// Class queue: declare, bind, unbind, purge, delete.

#include <algorithm>

#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "broker/control.hpp"
#include "broker/decode.hpp"
#include "broker/equivalence.hpp"
#include "broker/generated_name.hpp"
#include "broker/queue_arguments.hpp"
#include "broker/reply_address.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
namespace queue = wire::queue;

constexpr std::string_view kReservedPrefix = "amq.";

std::uint32_t count32(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
}

}  // namespace

asio::awaitable<void> Channel::handle_queue_method(wire::MethodId id, std::string_view payload) {
  if (id == queue::Declare::kId) {
    co_await declare_queue(decode_or_throw<queue::Declare>(payload));
  } else if (id == queue::Bind::kId) {
    co_await bind_queue(decode_or_throw<queue::Bind>(payload));
  } else if (id == queue::Unbind::kId) {
    co_await unbind_queue(decode_or_throw<queue::Unbind>(payload));
  } else if (id == queue::Purge::kId) {
    co_await purge(decode_or_throw<queue::Purge>(payload));
  } else if (id == queue::Delete::kId) {
    co_await delete_queue(decode_or_throw<queue::Delete>(payload));
  } else {
    throw_unknown_method(id);
  }
}

asio::awaitable<QueueCounts> Channel::counts_of(QueueId id) {
  Worker& home = connection_.worker().peer(connection_.worker().home_of(id));
  auto count = [&home, id] { return home.home().counts(id); };
  co_return co_await run_on(home, std::move(count));
}

asio::awaitable<void> Channel::declare_queue(const queue::Declare& method) {
  constexpr wire::MethodId kMethod = queue::Declare::kId;
  const bool no_wait = method.no_wait;
  std::string name = method.queue.str();
  if (method.passive) {
    co_await declare_passively(queue_name(name, kMethod), no_wait);
    co_return;
  }
  check_name("queue", name, kMethod);
  const bool server_named = name.empty();
  if (server_named) {
    name = generated_name("amq.gen-", connection_.worker().random(), connection_.worker().random());
  }
  check_configure("queue", name, kMethod);
  QueueDef wanted;
  wanted.spec.vhost = connection_.vhost().name;
  wanted.spec.name = name;
  wanted.spec.durable = method.durable;
  wanted.spec.exclusive = method.exclusive;
  wanted.spec.auto_delete = method.auto_delete;
  wanted.spec.arguments = method.arguments;
  wanted.home = connection_.worker().index();
  if (method.exclusive) wanted.owner = connection_.id();

  const bool exists = connection_.vhost().find_queue(name) != nullptr;
  if (exists) check_equivalent(require_queue(name, kMethod).spec, wanted.spec);
  if (!exists && !server_named && name.starts_with(kReservedPrefix)) {
    throw wire::ChannelError(ChannelErrorCode::access_refused,
                             "queue name '" + name + "' contains reserved prefix 'amq.*'", kMethod);
  }
  check_queue_arguments(wanted.spec);
  if (const auto* dlx = wanted.spec.arguments.find("x-dead-letter-exchange"); dlx && !exists) {
    check_read("queue", name, kMethod);
    check_write("exchange", *dlx->as_string(), kMethod);
  }
  if (wanted.spec.exclusive) connection_.note_exclusive_queue();
  Control& control = connection_.worker().control();
  const QueueDef declared =
      co_await control.call(control.declare_queue(std::move(wanted), connection_.id()));
  last_declared_queue_ = name;
  if (no_wait) co_return;
  const QueueCounts counts = co_await counts_of(declared.spec.id);
  reply(queue::DeclareOk{name, count32(counts.ready), count32(counts.consumers)});
}

asio::awaitable<void> Channel::declare_passively(const std::string& name, bool no_wait) {
  constexpr wire::MethodId kMethod = queue::Declare::kId;
  QueueCounts counts;
  if (is_reply_queue_name(name) || name == kReplyQueueName) {
    // Whoever replies asks whether the requester is still there.
    if (!co_await reply_consumer_exists(name)) {
      throw wire::ChannelError(ChannelErrorCode::not_found,
                               "no " + queue_in_vhost(name, connection_.vhost().name), kMethod);
    }
    counts.consumers = 1;
  } else {
    counts = co_await counts_of(require_queue(name, kMethod).spec.id);
    if (!counts.exists) {
      throw wire::ChannelError(ChannelErrorCode::not_found,
                               "no " + queue_in_vhost(name, connection_.vhost().name), kMethod);
    }
  }
  last_declared_queue_ = name;
  if (!no_wait) reply(queue::DeclareOk{name, count32(counts.ready), count32(counts.consumers)});
}

asio::awaitable<bool> Channel::reply_consumer_exists(std::string_view name) {
  if (name == kReplyQueueName) co_return reply_consumer_tag_.has_value();
  const auto address = parse_reply_queue_name(name);
  Worker& worker = connection_.worker();
  if (!address || address->worker.value >= worker.worker_count()) co_return false;
  Worker& there = worker.peer(address->worker);
  auto look = [&there, to = *address] {
    Connection* connection = there.find(to.connection);
    return connection != nullptr && connection->awaits_replies(to);
  };
  co_return co_await run_on(there, std::move(look));
}

asio::awaitable<void> Channel::bind_queue(const queue::Bind& method) {
  constexpr wire::MethodId kMethod = queue::Bind::kId;
  const bool no_wait = method.no_wait;
  const std::string name = queue_name(method.queue, kMethod);
  // "" for both: the key is the queue's name too.
  const std::string key = method.queue.text.empty() && method.routing_key.text.empty()
                              ? name
                              : method.routing_key.str();
  refuse_default_exchange(method.exchange, kMethod);
  check_name("binding key", key, kMethod);
  check_write("queue", name, kMethod);
  check_read("exchange", method.exchange, kMethod);
  BindingDef binding{
      connection_.vhost().name, method.exchange.str(), DestinationKind::queue, name, key,
      method.arguments};
  Control& control = connection_.worker().control();
  co_await control.call(control.bind(std::move(binding), connection_.id()));
  if (!no_wait) reply(queue::BindOk{});
}

asio::awaitable<void> Channel::unbind_queue(const queue::Unbind& method) {
  constexpr wire::MethodId kMethod = queue::Unbind::kId;
  const std::string name = queue_name(method.queue, kMethod);
  refuse_default_exchange(method.exchange, kMethod);
  check_write("queue", name, kMethod);
  check_read("exchange", method.exchange, kMethod);
  BindingDef binding{connection_.vhost().name, method.exchange.str(), DestinationKind::queue, name,
                     method.routing_key.str(), method.arguments};
  Control& control = connection_.worker().control();
  co_await control.call(control.unbind(std::move(binding), connection_.id()));
  reply(queue::UnbindOk{});
}

asio::awaitable<void> Channel::purge(const queue::Purge& method) {
  constexpr wire::MethodId kMethod = queue::Purge::kId;
  const bool no_wait = method.no_wait;
  const std::string name = queue_name(method.queue, kMethod);
  check_read("queue", name, kMethod);
  const QueueId id = require_queue(name, kMethod).spec.id;
  Worker& home = connection_.worker().peer(connection_.worker().home_of(id));
  auto purge = [&home, id] { return home.home().purge(id); };
  const std::optional<std::uint64_t> purged = co_await run_on(home, std::move(purge));
  if (!purged) {
    throw wire::ChannelError(ChannelErrorCode::not_found,
                             "no " + queue_in_vhost(name, connection_.vhost().name), kMethod);
  }
  if (!no_wait) reply(queue::PurgeOk{count32(*purged)});
}

asio::awaitable<void> Channel::delete_queue(const queue::Delete& method) {
  constexpr wire::MethodId kMethod = queue::Delete::kId;
  const bool no_wait = method.no_wait;
  const bool if_unused = method.if_unused;
  const bool if_empty = method.if_empty;
  const std::string name = queue_name(method.queue, kMethod);
  check_configure("queue", name, kMethod);
  Control& control = connection_.worker().control();
  const std::uint64_t messages = co_await control.call(
      control.delete_queue(connection_.vhost().name, name, if_unused, if_empty, connection_.id()));
  if (!no_wait) reply(queue::DeleteOk{count32(messages)});
}

}  // namespace stoat::broker
