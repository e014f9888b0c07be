#include "stoat/client/consumer.hpp"

#include <utility>

#include "client/operation.hpp"

namespace stoat::client {

Consumer::Consumer(std::shared_ptr<Session> session, std::uint32_t channel_incarnation,
                   std::uint64_t id, std::string tag)
    : session_(std::move(session)),
      channel_incarnation_(channel_incarnation),
      id_(id),
      tag_(std::move(tag)) {}

Consumer& Consumer::operator=(Consumer&& other) noexcept {
  if (this != &other) {
    release_in_background();
    session_ = std::move(other.session_);
    channel_incarnation_ = other.channel_incarnation_;
    id_ = other.id_;
    tag_ = std::move(other.tag_);
  }
  return *this;
}

Consumer::~Consumer() {
  release_in_background();
}

void Consumer::release_in_background() noexcept {
  const auto session = std::exchange(session_, nullptr);
  if (session == nullptr) return;
  session->perform([incarnation = ChannelIncarnation(channel_incarnation_),
                    id = ConsumerId(id_)](ConnectionMachine& machine) {
    if (ChannelMachine* channel = machine.channel(incarnation)) channel->release_consumer(id);
  });
}

asio::awaitable<std::optional<Delivery>> Consumer::next() {
  return await_next(std::nullopt);
}

asio::awaitable<std::optional<Delivery>> Consumer::next_for(std::chrono::milliseconds timeout) {
  return await_next(timeout);
}

asio::awaitable<std::optional<Delivery>> Consumer::await_next(
    std::optional<std::chrono::milliseconds> timeout) {
  return await_channel<std::optional<Delivery>>(
      session_, ChannelIncarnation(channel_incarnation_),
      [id = ConsumerId(id_), timeout](ChannelMachine& channel, DeliveryBuffer::Next done) {
        channel.next_delivery(id, timeout, std::move(done));
      });
}

asio::awaitable<void> Consumer::cancel() {
  return await_channel<void>(
      session_, ChannelIncarnation(channel_incarnation_),
      [id = ConsumerId(id_)](ChannelMachine& channel, Completion<void> done) {
        channel.cancel(id, std::move(done));
      });
}

}  // namespace stoat::client
