// basic.qos, consume, cancel, get, recover.

#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "broker/decode.hpp"
#include "broker/generated_name.hpp"
#include "broker/queue_arguments.hpp"
#include "broker/reply_address.hpp"
#include "wire/codec.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
using wire::ConnectionErrorCode;
namespace basic = wire::basic;

// basic.get at a queue's home, answered on this worker.
asio::awaitable<Got> get_from(Worker& here, Worker& home, QueueId queue) {
  auto start = [&here, &home](auto handler, QueueId id) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto ask = [&here, &home, shared, id] {
      home.home().get(id, [&here, shared](Got got) {
        here.post([shared, got = std::move(got)] { std::move (*shared)(got); });
      });
    };
    if (home.on_this_thread()) {
      ask();
      home.end_turn();  // what the answer waits for has to leave for the store
    } else {
      home.post(ask);
    }
  };
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Got)>(
      std::move(start), asio::use_awaitable, queue);
}

}  // namespace

asio::awaitable<void> Channel::handle_basic_method(wire::MethodId id, std::string_view payload) {
  if (id == basic::Qos::kId) {
    co_await qos(decode_or_throw<basic::Qos>(payload));
  } else if (id == basic::Consume::kId) {
    co_await consume(decode_or_throw<basic::Consume>(payload));
  } else if (id == basic::Cancel::kId) {
    co_await cancel(decode_or_throw<basic::Cancel>(payload));
  } else if (id == basic::Get::kId) {
    co_await get(decode_or_throw<basic::Get>(payload));
  } else if (id == basic::Recover::kId) {
    co_await recover(decode_or_throw<basic::Recover>(payload).requeue, id);
  } else if (id == basic::RecoverAsync::kId) {
    co_await recover(decode_or_throw<basic::RecoverAsync>(payload).requeue, id);
  } else if (id == basic::CancelOk::kId) {
    co_return;  // the answer to our basic.cancel
  } else {
    throw_unknown_method(id);
  }
}

// Not global: for each consumer to come. Global: shared by all consumers of the channel, also those
// that are there.
asio::awaitable<void> Channel::qos(const basic::Qos& method) {
  if (method.prefetch_size != 0) throw_not_implemented("prefetch_size!=0", basic::Qos::kId);
  if (!method.global) {
    prefetch_ = method.prefetch_count;
    reply(basic::QosOk{});
    co_return;
  }
  const bool was_limited = channel_prefetch_ > 0;
  channel_prefetch_ = method.prefetch_count;
  const bool limited = channel_prefetch_ > 0;
  if (limited != was_limited) {
    limited_unacked_ = 0;
    leased_ = 0;
    lease_queue_.clear();
    Worker& worker = connection_.worker();
    for (auto& [id, consumer] : consumers_) consumer.limited = limited && !consumer.no_ack;
    unacked_.for_each_held(DeliveryTag(0), [&](UnackedDeliveries::Entry& entry) {
      entry.limited = limited && entry.consumer != ConsumerId();
      if (entry.limited) ++limited_unacked_;
    });
    const auto consumers = consumers_;
    for (const auto& [id, consumer] : consumers) {
      if (consumer.no_ack) continue;
      Worker& home = worker.peer(worker.home_of(consumer.queue));
      auto limit = [&home, queue = consumer.queue, connection = connection_.id(), id = id,
                    limited] { home.home().set_channel_limited(queue, connection, id, limited); };
      co_await run_on(home, std::move(limit));
    }
  } else {
    grant_leases();
  }
  reply(basic::QosOk{});
}

std::string Channel::consumer_tag(const basic::Consume& method) {
  if (method.consumer_tag.text.empty()) {
    return generated_name("amq.ctag-", connection_.worker().random(),
                          connection_.worker().random());
  }
  std::string tag = method.consumer_tag.str();
  check_name("consumer tag", tag, basic::Consume::kId);
  bool taken = reply_consumer_tag_ == tag;
  for (const auto& [id, consumer] : consumers_) taken = taken || consumer.tag == tag;
  if (taken) {
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed,
                                "attempt to reuse consumer tag '" + tag + "'", basic::Consume::kId);
  }
  return tag;
}

asio::awaitable<void> Channel::consume(const basic::Consume& method) {
  constexpr wire::MethodId kMethod = basic::Consume::kId;
  if (consumers_.size() >= kMaxConsumersPerChannel) {
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed,
                                "too many consumers on this channel", kMethod);
  }
  const std::string tag = consumer_tag(method);
  if (method.queue.text == kReplyQueueName) {
    consume_replies(method, tag);
    co_return;
  }
  const std::string name = queue_name(method.queue, kMethod);
  check_read("queue", name, kMethod);
  const QueueDef queue = require_queue(name, kMethod);
  const std::int32_t priority =
      check_consume_arguments(method.arguments, name, connection_.vhost().name);

  ConsumerSpec spec;
  spec.connection = connection_.id();
  spec.connection_worker = connection_.worker().index();
  spec.channel = ref_;
  spec.id = connection_.new_consumer_id();
  spec.tag = tag;
  spec.no_ack = method.no_ack;
  spec.exclusive = method.exclusive;
  spec.priority = priority;
  spec.prefetch = prefetch_;
  spec.channel_limited = channel_prefetch_ > 0 && !method.no_ack;
  spec.paused = !flow_active_;
  const ConsumerId id = spec.id;
  const bool no_wait = method.no_wait;
  // Known here before the home can deliver.
  consumers_.emplace(id,
                     Consumer{tag, queue.spec.id, method.no_ack, spec.channel_limited, false, {}});
  Worker& home = connection_.worker().peer(connection_.worker().home_of(queue.spec.id));
  auto add = [&home, queue = queue.spec.id, spec = std::move(spec)] {
    return home.home().consume(queue, spec);
  };
  const ConsumeResult result = co_await run_on(home, std::move(add));
  if (result == ConsumeResult::ok) {
    if (!no_wait) reply(basic::ConsumeOk{tag});
    announce(id);
    co_return;
  }
  consumers_.erase(id);
  const std::string where = queue_in_vhost(name, connection_.vhost().name);
  if (result == ConsumeResult::no_queue) {
    throw wire::ChannelError(ChannelErrorCode::not_found, "no " + where, kMethod);
  }
  throw wire::ChannelError(ChannelErrorCode::access_refused, where + " in exclusive use", kMethod);
}

// consume-ok is out: what another worker's home delivered meanwhile may follow.
void Channel::announce(ConsumerId id) {
  const auto it = consumers_.find(id);
  if (it == consumers_.end()) return;  // cancelled by the queue meanwhile
  it->second.announced = true;
  const std::vector<Delivery> early = std::move(it->second.early);
  for (const Delivery& delivery : early) deliver(delivery);
}

void Channel::consume_replies(const basic::Consume& method, std::string tag) {
  constexpr wire::MethodId kMethod = basic::Consume::kId;
  if (reply_consumer_tag_) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed, "reply consumer already set",
                             kMethod);
  }
  if (!method.no_ack) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             "reply consumer cannot acknowledge", kMethod);
  }
  reply_secret_ = connection_.worker().random();
  reply_consumer_tag_ = tag;
  if (!method.no_wait) reply(basic::ConsumeOk{tag});
}

asio::awaitable<void> Channel::cancel(const basic::Cancel& method) {
  const std::string tag = method.consumer_tag.str();
  const bool no_wait = method.no_wait;
  if (reply_consumer_tag_ == tag) reply_consumer_tag_.reset();
  for (const auto& [id, consumer] : consumers_) {
    if (consumer.tag != tag) continue;
    Worker& home = connection_.worker().peer(connection_.worker().home_of(consumer.queue));
    const ConsumerId cancelled = id;
    auto remove = [&home, queue = consumer.queue, connection = connection_.id(), cancelled] {
      home.home().cancel(queue, connection, cancelled);
    };
    co_await run_on(home, std::move(remove));
    consumers_.erase(cancelled);
    break;
  }
  // An unknown tag is cancelled all the same.
  if (!no_wait) reply(basic::CancelOk{tag});
}

asio::awaitable<void> Channel::get(const basic::Get& method) {
  constexpr wire::MethodId kMethod = basic::Get::kId;
  const std::string name = queue_name(method.queue, kMethod);
  const bool no_ack = method.no_ack;
  check_read("queue", name, kMethod);
  const QueueId queue = require_queue(name, kMethod).spec.id;
  Worker& worker = connection_.worker();
  const WorkerIndex home_index = worker.home_of(queue);
  const Got got = co_await get_from(worker, worker.peer(home_index), queue);
  if (got.queue_gone) {
    throw wire::ChannelError(ChannelErrorCode::not_found,
                             "no " + queue_in_vhost(name, connection_.vhost().name), kMethod);
  }
  if (got.unreadable) {
    throw wire::ChannelError(
        ChannelErrorCode::not_found,
        queue_in_vhost(name, connection_.vhost().name) + " cannot be read from disk", kMethod);
  }
  if (got.message == nullptr) {
    reply(basic::GetEmpty{});
    co_return;
  }
  const DeliveryTag tag = unacked_.next_tag();
  reply(basic::GetOk{
      tag.value, got.redelivered, got.message->exchange(), got.message->routing_key(),
      static_cast<std::uint32_t>(std::min<std::uint64_t>(got.messages_left, UINT32_MAX))});
  std::string& out = connection_.output().tail();
  wire::append_content_header(out, ref_.number, got.message->body().size(),
                              got.message->properties());
  connection_.output().append_body(ref_.number, got.message, connection_.frame_max_bytes());
  const std::uint64_t end = connection_.output().appended_total();
  const Sequence at = got.position.sequence;
  if (no_ack) {
    connection_.settle_when_written(end, home_index,
                                    {queue, got.position.stream, SettleKind::sent, at, at});
  } else {
    unacked_.add({tag, queue, at, ConsumerId(), end, got.position.stream});
  }
}

}  // namespace stoat::broker
