#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stoat/client/consumer.hpp"
#include "stoat/client/error.hpp"
#include "stoat/client/message.hpp"
#include "stoat/client/options.hpp"

namespace stoat::client {

// A channel of a Connection. Operations go to the broker in the order they are started; a publish
// that waits for room is the exception. Most mistakes close the channel: then the operation that
// was at fault, and all that follow, throw the broker's code and text.
//
// Thread: as Connection.
// Names, keys and tags are at most 255 bytes of UTF-8; else invalid_argument, and nothing is sent.
class Channel {
 public:
  // Not open: only to be assigned to or destroyed.
  Channel() = default;
  Channel(Channel&&) noexcept = default;
  Channel& operator=(Channel&& other) noexcept;
  // Closes it in the background if it is open.
  ~Channel();

  // type: direct, fanout, topic, headers, or one the broker adds.
  boost::asio::awaitable<void> declare_exchange(std::string exchange, std::string type,
                                                ExchangeOptions options = {},
                                                Table arguments = Table());
  boost::asio::awaitable<void> delete_exchange(std::string exchange,
                                               DeleteExchangeOptions options = {});

  // An empty name lets the broker choose one; the answer says which.
  boost::asio::awaitable<QueueInfo> declare_queue(std::string queue, QueueOptions options = {},
                                                  Table arguments = Table());
  boost::asio::awaitable<void> bind_queue(std::string queue, std::string exchange,
                                          std::string binding_key, Table arguments = Table());
  boost::asio::awaitable<void> unbind_queue(std::string queue, std::string exchange,
                                            std::string binding_key, Table arguments = Table());
  // How many ready messages there were.
  boost::asio::awaitable<std::uint32_t> purge_queue(std::string queue);
  boost::asio::awaitable<std::uint32_t> delete_queue(std::string queue,
                                                     DeleteQueueOptions options = {});

  // Sends the message and waits for what the broker says of it. Several may be under way at once
  // (start them in coroutines of their own), up to ConnectionOptions::max_unconfirmed; beyond that
  // it first waits for room. Throws only when the message was never sent. The first call puts the
  // channel into confirm mode.
  boost::asio::awaitable<PublishResult> publish(std::string exchange, std::string routing_key,
                                                Message message, PublishOptions options = {});
  // Sends it and asks nothing: a message that the broker cannot take or route is gone without a
  // word. Waits while there is no room.
  boost::asio::awaitable<void> publish_unconfirmed(std::string exchange, std::string routing_key,
                                                   Message message);

  // How many deliveries each new consumer of the channel (global: all of the channel together) may
  // hold unsettled; 0: no limit.
  boost::asio::awaitable<void> qos(std::uint16_t prefetch_count, bool global = false);
  // An empty consumer_tag lets the client choose one.
  boost::asio::awaitable<Consumer> consume(std::string queue, ConsumeOptions options = {},
                                           std::string consumer_tag = std::string(),
                                           Table arguments = Table());
  // One message, or nullopt when the queue is empty. For a stream of them use consume().
  boost::asio::awaitable<std::optional<Delivery>> get(std::string queue, GetOptions options = {});

  // Settle a delivery of this channel; there is no answer to wait for. When the channel has ended
  // they do nothing, as the broker has taken the delivery back. Throws invalid_argument for a
  // delivery of another channel.
  void ack(const Delivery& delivery, AckOptions options = {});
  void nack(const Delivery& delivery, NackOptions options = {});
  void reject(const Delivery& delivery, bool requeue);

  // Orderly. What is pending ends with ErrorKind::closed, publishes without an answer are lost.
  boost::asio::awaitable<void> close();

 private:
  friend class Connection;
  Channel(std::shared_ptr<class Session> session, std::uint32_t incarnation);
  void close_in_background() noexcept;
  boost::asio::awaitable<PublishResult> start_publish(std::string exchange, std::string routing_key,
                                                      Message message, PublishOptions options,
                                                      bool confirm);
  void check_own(const Delivery& delivery) const;

  std::shared_ptr<class Session> session_;
  std::uint32_t incarnation_ = 0;  // of the channel number: unique in this process
};

}  // namespace stoat::client
