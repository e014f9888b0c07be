#include "broker/channel.hpp"

#include <utility>

#include "broker/channel_reply.hpp"
#include "broker/control.hpp"
#include "broker/decode.hpp"
#include "wire/access.hpp"
#include "wire/codec.hpp"
#include "wire/confirm.hpp"
#include "wire/tx.hpp"

namespace stoat::broker {

using wire::ConnectionErrorCode;

Channel::Channel(Connection& connection, ChannelNumber number, ChannelIncarnation incarnation)
    : connection_(connection), ref_{number, incarnation} {}

bool Channel::handle_at_once(wire::MethodId id, std::string_view payload) {
  if (closing_) {
    // Only the close handshake is of interest any more.
    return id != wire::channel::Close::kId && id != wire::channel::CloseOk::kId;
  }
  if (expects_content()) {
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame,
                                "expected content, got a method", id);
  }
  if (id.class_id != wire::basic::kClass) return false;
  switch (id.method_id) {
    case wire::basic::Publish::kId.method_id:
      on_publish(payload);
      return true;
    case wire::basic::Ack::kId.method_id:
      on_ack(decode_or_throw<wire::basic::Ack>(payload));
      return true;
    case wire::basic::Nack::kId.method_id: {
      const auto nack = decode_or_throw<wire::basic::Nack>(payload);
      on_nack(DeliveryTag(nack.delivery_tag), nack.multiple, nack.requeue, id);
      return true;
    }
    case wire::basic::Reject::kId.method_id: {
      const auto reject = decode_or_throw<wire::basic::Reject>(payload);
      on_nack(DeliveryTag(reject.delivery_tag), false, reject.requeue, id);
      return true;
    }
    default:
      return false;
  }
}

asio::awaitable<void> Channel::handle(wire::MethodId id, std::string_view payload) {
  switch (id.class_id) {
    case wire::channel::kClass:
      co_await handle_channel_method(id, payload);
      co_return;
    case wire::access::kClass:
      decode_or_throw<wire::access::Request>(payload);
      reply(wire::access::RequestOk{1});
      co_return;
    case wire::exchange::kClass:
      co_await handle_exchange_method(id, payload);
      co_return;
    case wire::queue::kClass:
      co_await handle_queue_method(id, payload);
      co_return;
    case wire::basic::kClass:
      co_await handle_basic_method(id, payload);
      co_return;
    case wire::confirm::kClass:
      select_confirms(decode_or_throw<wire::confirm::Select>(payload).no_wait);
      co_return;
    case wire::tx::kClass:
      co_await handle_transaction_method(id);
      co_return;
    default:
      throw_unknown_method(id);
  }
}

asio::awaitable<void> Channel::handle_channel_method(wire::MethodId id, std::string_view payload) {
  if (id == wire::channel::Open::kId) {
    throw wire::ConnectionError(ConnectionErrorCode::channel_error, "second 'channel.open' seen",
                                id);
  }
  if (id == wire::channel::Flow::kId) {
    co_await flow(decode_or_throw<wire::channel::Flow>(payload).active);
    co_return;
  }
  if (id == wire::channel::FlowOk::kId) co_return;
  throw_unknown_method(id);
}

// Deliveries pause or go on; what was staged before flow-ok is still delivered.
asio::awaitable<void> Channel::flow(bool active) {
  flow_active_ = active;
  Worker& worker = connection_.worker();
  const auto consumers = consumers_;
  for (const auto& [id, consumer] : consumers) {
    Worker& home = worker.peer(worker.home_of(consumer.queue));
    auto pause = [&home, queue = consumer.queue, connection = connection_.id(), id = id, active] {
      home.home().pause(queue, connection, id, !active);
    };
    co_await run_on(home, std::move(pause));
  }
  reply(wire::channel::FlowOk{active});
}

// Consumers first, so that what goes back is not delivered here again.
asio::awaitable<void> Channel::release() {
  drop_content();
  Worker& worker = connection_.worker();
  auto consumers = std::exchange(consumers_, {});
  for (const auto& [id, consumer] : consumers) {
    Worker& home = worker.peer(worker.home_of(consumer.queue));
    auto cancel = [&home, queue = consumer.queue, connection = connection_.id(), id = id] {
      home.home().cancel(queue, connection, id);
    };
    co_await run_on(home, std::move(cancel));
  }
  unacked_.restore_transaction();
  const std::uint64_t written = connection_.output().written_total();
  unacked_.for_each_held(DeliveryTag(0), [&](UnackedDeliveries::Entry& entry) {
    settle_entry(entry,
                 entry.output_end <= written ? SettleKind::requeue : SettleKind::undelivered);
  });
  unacked_.compact();
  transaction_.reset();
  reply_consumer_tag_.reset();
  connection_.send_staged();
}

void Channel::drop_content() {
  connection_.release_content(std::exchange(held_content_bytes_, 0));
  content_ = Content::none;
  builder_ = MessageBuilder();
  builder_started_ = false;
}

}  // namespace stoat::broker
