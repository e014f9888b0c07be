#include "stoat/client/channel.hpp"

#include <utility>

#include "client/operation.hpp"
#include "client/send_method.hpp"

namespace stoat::client {

Channel::Channel(std::shared_ptr<Session> session, std::uint32_t incarnation)
    : session_(std::move(session)), incarnation_(incarnation) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  if (this != &other) {
    close_in_background();
    session_ = std::move(other.session_);
    incarnation_ = other.incarnation_;
  }
  return *this;
}

Channel::~Channel() {
  close_in_background();
}

void Channel::close_in_background() noexcept {
  if (const auto session = std::exchange(session_, nullptr))
    session->perform([incarnation = ChannelIncarnation(incarnation_)](ConnectionMachine& machine) {
      machine.release_channel(incarnation);
    });
}

asio::awaitable<void> Channel::declare_exchange(std::string exchange, std::string type,
                                                ExchangeOptions options, Table arguments) {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [exchange = std::move(exchange), type = std::move(type), options,
       arguments = std::move(arguments)](ChannelMachine& channel, Completion<void> done) mutable {
        channel.declare_exchange(exchange, type, options, std::move(arguments), std::move(done));
      });
}

asio::awaitable<void> Channel::delete_exchange(std::string exchange,
                                               DeleteExchangeOptions options) {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [exchange = std::move(exchange), options](ChannelMachine& channel, Completion<void> done) {
        channel.delete_exchange(exchange, options, std::move(done));
      });
}

asio::awaitable<QueueInfo> Channel::declare_queue(std::string queue, QueueOptions options,
                                                  Table arguments) {
  return await_channel<QueueInfo>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue), options, arguments = std::move(arguments)](
          ChannelMachine& channel, Completion<QueueInfo> done) mutable {
        channel.declare_queue(queue, options, std::move(arguments), std::move(done));
      });
}

asio::awaitable<void> Channel::bind_queue(std::string queue, std::string exchange,
                                          std::string binding_key, Table arguments) {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue), exchange = std::move(exchange), key = std::move(binding_key),
       arguments = std::move(arguments)](ChannelMachine& channel, Completion<void> done) mutable {
        channel.bind_queue(queue, exchange, key, std::move(arguments), std::move(done));
      });
}

asio::awaitable<void> Channel::unbind_queue(std::string queue, std::string exchange,
                                            std::string binding_key, Table arguments) {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue), exchange = std::move(exchange), key = std::move(binding_key),
       arguments = std::move(arguments)](ChannelMachine& channel, Completion<void> done) mutable {
        channel.unbind_queue(queue, exchange, key, std::move(arguments), std::move(done));
      });
}

asio::awaitable<std::uint32_t> Channel::purge_queue(std::string queue) {
  return await_channel<std::uint32_t>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue)](ChannelMachine& channel, Completion<std::uint32_t> done) {
        channel.purge_queue(queue, std::move(done));
      });
}

asio::awaitable<std::uint32_t> Channel::delete_queue(std::string queue,
                                                     DeleteQueueOptions options) {
  return await_channel<std::uint32_t>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue), options](ChannelMachine& channel, Completion<std::uint32_t> done) {
        channel.delete_queue(queue, options, std::move(done));
      });
}

asio::awaitable<PublishResult> Channel::start_publish(std::string exchange, std::string routing_key,
                                                      Message message, PublishOptions options,
                                                      bool confirm) {
  Publisher::Publish publish;
  // Encoded here, on the caller's thread.
  std::optional<Error> refused = check_properties(message.properties);
  if (!refused) publish.properties = message.properties.encode();
  publish.exchange = std::move(exchange);
  publish.routing_key = std::move(routing_key);
  publish.body = std::move(message.body);
  publish.mandatory = options.mandatory;
  publish.timeout = options.timeout;
  publish.confirm = confirm;
  return await_channel<PublishResult>(
      session_, ChannelIncarnation(incarnation_),
      [publish = std::move(publish), refused = std::move(refused)](
          ChannelMachine& channel, Completion<PublishResult> done) mutable {
        if (refused) return done(*refused);
        publish.done = std::move(done);
        channel.publish(std::move(publish));
      });
}

asio::awaitable<PublishResult> Channel::publish(std::string exchange, std::string routing_key,
                                                Message message, PublishOptions options) {
  return start_publish(std::move(exchange), std::move(routing_key), std::move(message), options,
                       true);
}

asio::awaitable<void> Channel::publish_unconfirmed(std::string exchange, std::string routing_key,
                                                   Message message) {
  co_await start_publish(std::move(exchange), std::move(routing_key), std::move(message), {},
                         false);
}

asio::awaitable<void> Channel::qos(std::uint16_t prefetch_count, bool global) {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [prefetch_count, global](ChannelMachine& channel, Completion<void> done) {
        channel.qos(prefetch_count, global, std::move(done));
      });
}

asio::awaitable<Consumer> Channel::consume(std::string queue, ConsumeOptions options,
                                           std::string consumer_tag, Table arguments) {
  using Subscription = ChannelMachine::Subscription;
  // Not within the co_await expression: g++ 12 would destroy what it captures twice.
  auto call = [queue = std::move(queue), options, tag = std::move(consumer_tag),
               arguments = std::move(arguments)](ChannelMachine& channel,
                                                 Completion<Subscription> done) mutable {
    channel.consume(queue, std::move(tag), options, std::move(arguments), std::move(done));
  };
  Subscription subscription = co_await await_channel<Subscription>(
      session_, ChannelIncarnation(incarnation_), std::move(call));
  co_return Consumer(session_, incarnation_, subscription.consumer.value,
                     std::move(subscription.consumer_tag));
}

asio::awaitable<std::optional<Delivery>> Channel::get(std::string queue, GetOptions options) {
  using Got = std::optional<Delivery>;
  return await_channel<Got>(
      session_, ChannelIncarnation(incarnation_),
      [queue = std::move(queue), options](ChannelMachine& channel, Completion<Got> done) {
        channel.get(queue, options, std::move(done));
      });
}

void Channel::check_own(const Delivery& delivery) const {
  if (delivery.channel_incarnation != incarnation_)
    throw Error(ErrorKind::invalid_argument,
                "a delivery can only be settled on the channel it came on");
}

void Channel::ack(const Delivery& delivery, AckOptions options) {
  check_own(delivery);
  session_->perform([incarnation = ChannelIncarnation(incarnation_), tag = delivery.delivery_tag,
                     options](ConnectionMachine& machine) {
    if (ChannelMachine* channel = machine.channel(incarnation)) channel->ack(tag, options);
  });
}

void Channel::nack(const Delivery& delivery, NackOptions options) {
  check_own(delivery);
  session_->perform([incarnation = ChannelIncarnation(incarnation_), tag = delivery.delivery_tag,
                     options](ConnectionMachine& machine) {
    if (ChannelMachine* channel = machine.channel(incarnation)) channel->nack(tag, options);
  });
}

void Channel::reject(const Delivery& delivery, bool requeue) {
  check_own(delivery);
  session_->perform([incarnation = ChannelIncarnation(incarnation_), tag = delivery.delivery_tag,
                     requeue](ConnectionMachine& machine) {
    if (ChannelMachine* channel = machine.channel(incarnation)) channel->reject(tag, requeue);
  });
}

asio::awaitable<void> Channel::close() {
  return await_channel<void>(
      session_, ChannelIncarnation(incarnation_),
      [](ChannelMachine& channel, Completion<void> done) { channel.close(std::move(done)); });
}

}  // namespace stoat::client
