#include "client/channel_machine.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "client/send_method.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/exchange.hpp"
#include "wire/queue.hpp"

namespace stoat::client {

namespace {

namespace basic = wire::basic;
using wire::ConnectionErrorCode;

template <class Method>
Method decoded(std::string_view payload) {
  auto method = wire::decode_method<Method>(payload);
  if (!method)
    throw wire::ConnectionError(ConnectionErrorCode::syntax_error, "malformed arguments",
                                Method::kId);
  return std::move(*method);
}

// The consumer tag by which the reply to this method is known; empty: it comes in its turn.
template <class Method>
std::string reply_tag(const Method& method) {
  if constexpr (std::is_same_v<Method, basic::Consume> || std::is_same_v<Method, basic::Cancel>)
    return method.consumer_tag.str();
  else
    return {};
}

}  // namespace

ChannelMachine::ChannelMachine(MachineContext& context, ChannelNumber number,
                               ChannelIncarnation incarnation)
    : context_(context),
      number_(number),
      incarnation_(incarnation),
      publisher_(context, number, rpcs_),
      consumers_(context),
      assembler_(context.options.max_message_bytes) {}

// --- Methods with a reply ------------------------------------------------------------------------

std::optional<Error> ChannelMachine::not_open() const {
  if (state_ == State::open) return std::nullopt;
  return reason_ ? *reason_ : Error(ErrorKind::closed, "the channel is not open yet");
}

template <class Reply, class Method, class T, class Convert>
void ChannelMachine::call(const Method& method, Completion<T> done, Convert convert,
                          RpcQueue::Late late) {
  if (auto error = not_open()) return done(*error);
  if (rpcs_.full())
    return done(Error(ErrorKind::limit_reached, "too many methods wait for a reply"));
  if (auto error = send_method(context_, number_, method)) return done(*error);
  rpcs_.push(
      RpcQueue::Expected{Reply::kId, {}, reply_tag(method)},
      context_.deadline_after(context_.options.rpc_timeout),
      [done = std::move(done), convert](Result<std::string_view> payload) mutable {
        if (payload.has_error()) return done(payload.error());
        const auto reply = wire::decode_method<Reply>(*payload);
        if (reply) return done(convert(*reply));
        done(Error(ErrorKind::protocol_violation, "the broker's reply is malformed"));
        throw wire::ConnectionError(ConnectionErrorCode::syntax_error, "malformed arguments",
                                    Reply::kId);
      },
      std::move(late));
}

template <class Reply, class Method>
void ChannelMachine::order(const Method& method, Completion<void> done, RpcQueue::Late late) {
  call<Reply>(
      method, std::move(done), [](const Reply&) { return Result<void>(); }, std::move(late));
}

void ChannelMachine::declare_exchange(const std::string& exchange, const std::string& type,
                                      ExchangeOptions options, Table arguments,
                                      Completion<void> done) {
  order<wire::exchange::DeclareOk>(wire::exchange::Declare{.exchange = exchange,
                                                           .type = type,
                                                           .passive = options.passive,
                                                           .durable = options.durable,
                                                           .auto_delete = options.auto_delete,
                                                           .internal = options.internal,
                                                           .arguments = std::move(arguments)},
                                   std::move(done));
}

void ChannelMachine::delete_exchange(const std::string& exchange, DeleteExchangeOptions options,
                                     Completion<void> done) {
  order<wire::exchange::DeleteOk>(
      wire::exchange::Delete{.exchange = exchange, .if_unused = options.if_unused},
      std::move(done));
}

void ChannelMachine::declare_queue(const std::string& queue, QueueOptions options, Table arguments,
                                   Completion<QueueInfo> done) {
  call<wire::queue::DeclareOk>(
      wire::queue::Declare{.queue = queue,
                           .passive = options.passive,
                           .durable = options.durable,
                           .exclusive = options.exclusive,
                           .auto_delete = options.auto_delete,
                           .arguments = std::move(arguments)},
      std::move(done), [](const wire::queue::DeclareOk& reply) {
        return QueueInfo{reply.queue.str(), reply.message_count, reply.consumer_count};
      });
}

void ChannelMachine::bind_queue(const std::string& queue, const std::string& exchange,
                                const std::string& binding_key, Table arguments,
                                Completion<void> done) {
  order<wire::queue::BindOk>(wire::queue::Bind{.queue = queue,
                                               .exchange = exchange,
                                               .routing_key = binding_key,
                                               .arguments = std::move(arguments)},
                             std::move(done));
}

void ChannelMachine::unbind_queue(const std::string& queue, const std::string& exchange,
                                  const std::string& binding_key, Table arguments,
                                  Completion<void> done) {
  order<wire::queue::UnbindOk>(wire::queue::Unbind{.queue = queue,
                                                   .exchange = exchange,
                                                   .routing_key = binding_key,
                                                   .arguments = std::move(arguments)},
                               std::move(done));
}

void ChannelMachine::purge_queue(const std::string& queue, Completion<std::uint32_t> done) {
  call<wire::queue::PurgeOk>(wire::queue::Purge{.queue = queue}, std::move(done),
                             [](const wire::queue::PurgeOk& reply) { return reply.message_count; });
}

void ChannelMachine::delete_queue(const std::string& queue, DeleteQueueOptions options,
                                  Completion<std::uint32_t> done) {
  call<wire::queue::DeleteOk>(
      wire::queue::Delete{
          .queue = queue, .if_unused = options.if_unused, .if_empty = options.if_empty},
      std::move(done), [](const wire::queue::DeleteOk& reply) { return reply.message_count; });
}

void ChannelMachine::qos(std::uint16_t prefetch_count, bool global, Completion<void> done) {
  order<basic::QosOk>(basic::Qos{.prefetch_count = prefetch_count, .global = global},
                      std::move(done));
}

// --- Publishing, consuming, settling -------------------------------------------------------------

void ChannelMachine::publish(Publisher::Publish publish) {
  if (auto error = not_open()) return publish.done(*error);
  publisher_.publish(std::move(publish));
}

void ChannelMachine::consume(const std::string& queue, std::string consumer_tag,
                             ConsumeOptions options, Table arguments,
                             Completion<Subscription> done) {
  if (auto error = not_open()) return done(*error);
  if (consumer_tag.empty()) consumer_tag = consumers_.unused_tag();
  const auto added = consumers_.add(consumer_tag, options.no_ack);
  if (!added)
    return done(Error(ErrorKind::invalid_argument,
                      "consumer tag '" + consumer_tag + "' is in use on this channel"));
  const ConsumerId id = *added;
  Completion<Subscription> finish = [this, id,
                                     done = std::move(done)](Result<Subscription> result) mutable {
    // Whoever gets no consumer cannot release it. While the broker may still start it, it stays
    // active, to be cancelled when consume-ok comes.
    if (result.has_error()) {
      consumers_.release(id);
      if (result.error().kind() != ErrorKind::timeout) consumers_.fail(id, result.error());
    }
    done(std::move(result));
  };
  call<basic::ConsumeOk>(
      basic::Consume{.queue = queue,
                     .consumer_tag = consumer_tag,
                     .no_ack = options.no_ack,
                     .exclusive = options.exclusive,
                     .arguments = std::move(arguments)},
      std::move(finish),
      [id, consumer_tag](const basic::ConsumeOk&) {
        return Subscription{id, consumer_tag};
      },
      [this, id] { release_consumer(id); });
}

void ChannelMachine::next_delivery(ConsumerId consumer,
                                   std::optional<std::chrono::milliseconds> timeout,
                                   DeliveryBuffer::Next done) {
  const SteadyTime deadline = timeout ? context_.deadline_after(*timeout) : SteadyTime::max();
  consumers_.next(consumer, deadline, std::move(done));
}

void ChannelMachine::cancel(ConsumerId consumer, Completion<void> done) {
  if (!consumers_.is_active(consumer)) return done({});
  const std::string tag = consumers_.tag(consumer);
  Completion<void> finish = [this, consumer, done = std::move(done)](Result<void> result) mutable {
    if (result.has_value()) consumers_.stop(consumer);
    done(std::move(result));
  };
  order<basic::CancelOk>(basic::Cancel{.consumer_tag = tag}, std::move(finish),
                         [this, consumer] { consumers_.stop(consumer); });
}

void ChannelMachine::release_consumer(ConsumerId consumer) {
  const bool active = consumers_.is_active(consumer);
  for (const std::uint64_t tag : consumers_.release(consumer)) nack(tag, {.requeue = true});
  if (active) cancel(consumer, [](const Result<void>&) {});
}

void ChannelMachine::get(const std::string& queue, GetOptions options,
                         Completion<std::optional<Delivery>> done) {
  if (auto error = not_open()) return done(*error);
  if (rpcs_.full())
    return done(Error(ErrorKind::limit_reached, "too many methods wait for a reply"));
  if (auto error =
          send_method(context_, number_, basic::Get{.queue = queue, .no_ack = options.no_ack}))
    return done(*error);
  rpcs_.push(
      {basic::GetOk::kId, basic::GetEmpty::kId},
      context_.deadline_after(context_.options.rpc_timeout),
      [this, done = std::move(done)](Result<std::string_view> payload) mutable {
        if (payload.has_error()) return done(payload.error());
        done(std::exchange(got_, std::nullopt));
      },
      [this, no_ack = options.no_ack] {
        const auto late = std::exchange(got_, std::nullopt);
        if (late && !no_ack) nack(late->delivery_tag, {.requeue = true});
      });
}

template <class Method>
void ChannelMachine::send_if_open(const Method& method) {
  if (state_ == State::open) send_method(context_, number_, method);
}

void ChannelMachine::ack(std::uint64_t delivery_tag, AckOptions options) {
  send_if_open(basic::Ack{.delivery_tag = delivery_tag, .multiple = options.multiple});
}

void ChannelMachine::nack(std::uint64_t delivery_tag, NackOptions options) {
  send_if_open(basic::Nack{
      .delivery_tag = delivery_tag, .multiple = options.multiple, .requeue = options.requeue});
}

void ChannelMachine::reject(std::uint64_t delivery_tag, bool requeue) {
  send_if_open(basic::Reject{.delivery_tag = delivery_tag, .requeue = requeue});
}

// --- Opening and closing -------------------------------------------------------------------------

void ChannelMachine::open(Completion<void> done) {
  send_method(context_, number_, wire::channel::Open{});
  rpcs_.push(
      {wire::channel::OpenOk::kId}, context_.deadline_after(context_.options.rpc_timeout),
      [this, done = std::move(done)](Result<std::string_view> payload) mutable {
        if (payload.has_error()) {
          released_ = true;  // nobody gets a handle to it
          return done(payload.error());
        }
        state_ = State::open;
        done({});
      },
      [this] {
        state_ = State::open;
        release();
      });
}

void ChannelMachine::send_close(std::uint16_t code, std::string_view text) {
  send_method(context_, number_, wire::channel::Close{.reply_code = code, .reply_text = text});
  close_deadline_ = context_.deadline_after(context_.options.rpc_timeout);
}

void ChannelMachine::begin_closing(const Error& reason, bool by_program) {
  state_ = State::closing;
  reason_ = reason;
  rpcs_.fail_all(reason);
  publisher_.end(reason);
  if (by_program)
    consumers_.stop_all();
  else
    consumers_.fail_all(reason);
}

void ChannelMachine::close(Completion<void> done) {
  if (state_ != State::open) return done({});
  send_close(wire::kReplySuccess, "closed by the client");
  close_done_ = std::move(done);
  begin_closing(Error(ErrorKind::closed, "the channel was closed by this program"), true);
}

void ChannelMachine::release() {
  released_ = true;
  close([](const Result<void>&) {});
}

void ChannelMachine::close_for(const wire::ChannelError& error) {
  if (state_ != State::open) return;
  const auto code = static_cast<std::uint16_t>(error.code);
  send_close(code, error.text);
  begin_closing(
      Error(ErrorKind::channel_closed, "the channel was closed by this client", code, error.text),
      false);
}

void ChannelMachine::end(const Error& reason) {
  if (state_ == State::ended) return;
  const bool closing = state_ == State::closing;
  if (!closing) begin_closing(reason, reason.kind() == ErrorKind::closed);
  state_ = State::ended;
  close_deadline_ = SteadyTime::max();
  if (close_done_) std::exchange(close_done_, {})({});
}

void ChannelMachine::tick() {
  const Error timeout = context_.timeout_error();
  SteadyTime earliest = rpcs_.expire(context_.now, timeout);
  earliest = std::min(earliest, publisher_.expire(context_.now));
  earliest = std::min(earliest, consumers_.expire(context_.now));
  if (close_deadline_ <= context_.now) {
    // The number stays taken until close-ok comes after all.
    close_deadline_ = SteadyTime::max();
    if (close_done_) std::exchange(close_done_, {})(timeout);
  }
  earliest = std::min(earliest, close_deadline_);
  context_.next_deadline = std::min(context_.next_deadline, earliest);
}

// --- Frames --------------------------------------------------------------------------------------

void ChannelMachine::on_method(std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (!id) throw wire::ConnectionError(ConnectionErrorCode::frame_error, "method frame too short");
  if (*id == wire::channel::Close::kId) return on_close(payload);
  if (state_ == State::closing) {
    // Until close-ok everything else is of the time before.
    if (*id == wire::channel::CloseOk::kId) end(*reason_);
    return;
  }
  if (!assembler_.idle())
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame,
                                "method where content is due", *id);
  if (*id == basic::Deliver::kId) return on_deliver(payload);
  if (*id == basic::Ack::kId) {
    const auto ack = decoded<basic::Ack>(payload);
    return publisher_.on_confirm(ack.delivery_tag, ack.multiple, PublishStatus::acked);
  }
  if (*id == basic::Nack::kId) {
    const auto nack = decoded<basic::Nack>(payload);
    return publisher_.on_confirm(nack.delivery_tag, nack.multiple, PublishStatus::nacked);
  }
  if (*id == basic::Return::kId) return on_return(payload);
  if (*id == basic::Cancel::kId) return on_cancel(payload);
  if (*id == wire::channel::Flow::kId) return on_flow(payload);
  if (*id == basic::GetOk::kId) return on_get_ok(payload);
  if (*id == basic::ConsumeOk::kId)
    return rpcs_.on_reply(*id, payload, decoded<basic::ConsumeOk>(payload).consumer_tag);
  if (*id == basic::CancelOk::kId)
    return rpcs_.on_reply(*id, payload, decoded<basic::CancelOk>(payload).consumer_tag);
  // After both sides closed at once, the broker may answer our close when the number is in use
  // again.
  if (*id == wire::channel::CloseOk::kId) return;
  rpcs_.on_reply(*id, payload);
}

void ChannelMachine::on_header(std::string_view payload) {
  if (state_ == State::closing) return;
  if (assembler_.on_header(payload)) content_complete();
}

void ChannelMachine::on_body(std::string_view bytes) {
  if (state_ == State::closing) return;
  if (assembler_.on_body(bytes)) content_complete();
}

void ChannelMachine::on_deliver(std::string_view payload) {
  const auto method = decoded<basic::Deliver>(payload);
  const auto consumer = consumers_.active(method.consumer_tag);
  if (!consumer)
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed,
                                "delivery for an unknown consumer tag", basic::Deliver::kId);
  Deliver& incoming = incoming_.emplace<Deliver>();
  incoming.consumer = *consumer;
  incoming.delivery.exchange = method.exchange;
  incoming.delivery.routing_key = method.routing_key;
  incoming.delivery.redelivered = method.redelivered;
  incoming.delivery.delivery_tag = method.delivery_tag;
  assembler_.begin();
}

void ChannelMachine::on_get_ok(std::string_view payload) {
  if (!rpcs_.expects(basic::GetOk::kId))
    throw wire::ConnectionError(ConnectionErrorCode::command_invalid,
                                "get-ok that nothing was asked for", basic::GetOk::kId);
  const auto method = decoded<basic::GetOk>(payload);
  Delivery& delivery = incoming_.emplace<Get>().delivery;
  delivery.exchange = method.exchange;
  delivery.routing_key = method.routing_key;
  delivery.redelivered = method.redelivered;
  delivery.delivery_tag = method.delivery_tag;
  delivery.message_count = method.message_count;
  assembler_.begin();
}

void ChannelMachine::on_return(std::string_view payload) {
  const auto method = decoded<basic::Return>(payload);
  incoming_ = Return{method.reply_code, method.reply_text.str(), method.exchange.str(),
                     method.routing_key.str()};
  assembler_.begin();
}

void ChannelMachine::content_complete() {
  auto incoming = std::exchange(incoming_, std::monostate());
  const auto with_content = [this](Delivery delivery) {
    delivery.channel_incarnation = incarnation_.value;
    delivery.body = std::move(assembler_.body());
    delivery.raw_properties = std::move(assembler_.properties());
    return delivery;
  };
  if (auto* deliver = std::get_if<Deliver>(&incoming)) {
    const std::uint64_t tag = deliver->delivery.delivery_tag;
    const auto taken =
        consumers_.deliver(deliver->consumer, with_content(std::move(deliver->delivery)));
    if (taken == Consumers::Taken::give_back) nack(tag, {.requeue = true});
  } else if (auto* got = std::get_if<Get>(&incoming)) {
    got_ = with_content(std::move(got->delivery));
    rpcs_.on_reply(basic::GetOk::kId, {});
  } else if (auto* returned = std::get_if<Return>(&incoming)) {
    publisher_.on_return(returned->code, returned->text, returned->exchange, returned->routing_key,
                         assembler_.body());
  }
}

void ChannelMachine::on_cancel(std::string_view payload) {
  const auto method = decoded<basic::Cancel>(payload);
  const auto consumer = consumers_.active(method.consumer_tag);
  if (!method.no_wait) send_if_open(basic::CancelOk{.consumer_tag = method.consumer_tag});
  if (consumer)
    consumers_.fail(*consumer,
                    Error(ErrorKind::consumer_cancelled,
                          "the broker cancelled consumer '" + method.consumer_tag.str() + "'"));
}

void ChannelMachine::on_flow(std::string_view payload) {
  const auto method = decoded<wire::channel::Flow>(payload);
  send_if_open(wire::channel::FlowOk{.active = method.active});
  publisher_.on_flow(method.active);
}

void ChannelMachine::on_close(std::string_view payload) {
  const auto method = decoded<wire::channel::Close>(payload);
  send_method(context_, number_, wire::channel::CloseOk{});
  end(Error(ErrorKind::channel_closed, "the broker closed the channel", method.reply_code,
            method.reply_text));
}

}  // namespace stoat::client
