#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stoat/client/message.hpp"

namespace stoat::client {

// The deliveries of one basic.consume, as a stream:
//
//   co_await channel.qos(20);
//   auto consumer = co_await channel.consume("orders");
//   while (auto delivery = co_await consumer.next()) {
//     handle(delivery->body);
//     channel.ack(*delivery);
//   }
//
// Deliveries that have arrived are held here until they are asked for: bound them with
// Channel::qos, or by ConnectionOptions::max_buffered_bytes the whole connection stops reading.
//
// Thread: as Connection. Several coroutines may wait in next(); each delivery goes to one.
class Consumer {
 public:
  // Consumes nothing: only to be assigned to or destroyed.
  Consumer() = default;
  Consumer(Consumer&&) noexcept = default;
  Consumer& operator=(Consumer&& other) noexcept;
  // Cancels it in the background; what arrived and was not taken goes back to the queue.
  ~Consumer();

  const std::string& tag() const { return tag_; }

  // The next delivery. nullopt: the consumer was cancelled, or its channel closed, by this program
  // and everything that had arrived was taken. Throws when it ended for another reason:
  // consumer_cancelled, channel_closed, connection_closed, network…
  boost::asio::awaitable<std::optional<Delivery>> next();
  // Also nullopt when nothing arrives for this long.
  boost::asio::awaitable<std::optional<Delivery>> next_for(std::chrono::milliseconds timeout);

  // No more deliveries after this; those that have arrived can still be taken and settled.
  boost::asio::awaitable<void> cancel();

 private:
  friend class Channel;
  Consumer(std::shared_ptr<class Session> session, std::uint32_t channel_incarnation,
           std::uint64_t id, std::string tag);
  void release_in_background() noexcept;
  boost::asio::awaitable<std::optional<Delivery>> await_next(
      std::optional<std::chrono::milliseconds> timeout);

  std::shared_ptr<class Session> session_;
  std::uint32_t channel_incarnation_ = 0;
  std::uint64_t id_ = 0;
  std::string tag_;
};

}  // namespace stoat::client
