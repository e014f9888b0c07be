#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stoat/client/error.hpp"
#include "stoat/client/message.hpp"
#include "stoat/client/options.hpp"
#include "stoat/client/uri.hpp"

// The client for programs without an executor: the same operations under the same names, each of
// which returns when it is done. The contracts are those of connection.hpp, channel.hpp and
// consumer.hpp.
//
//   auto connection = blocking::Connection::connect("amqp://localhost");
//   auto channel = connection.open_channel();
//   channel.declare_queue("hello");
//   if (!channel.publish("", "hello", Message("Hello, world")).acked()) …
//
// A connection has one thread of its own for its socket and heartbeats; no code of the program
// runs on it. Thread: handles may be used by several threads at once, but not while one is moved
// or destroyed. Channels and consumers may outlive their connection, and then throw.

namespace stoat::client {

class Channel;
class Connection;
class Consumer;

namespace blocking {

class Runtime;

class Consumer {
 public:
  Consumer(Consumer&&) noexcept;
  Consumer& operator=(Consumer&&) noexcept;
  ~Consumer();

  const std::string& tag() const;
  std::optional<Delivery> next();
  std::optional<Delivery> next_for(std::chrono::milliseconds timeout);
  void cancel();

 private:
  friend class Channel;
  Consumer(std::shared_ptr<Runtime> runtime, client::Consumer consumer);
  std::shared_ptr<Runtime> runtime_;  // outlives what runs on it
  std::unique_ptr<client::Consumer> consumer_;
};

class Channel {
 public:
  Channel(Channel&&) noexcept;
  Channel& operator=(Channel&&) noexcept;
  ~Channel();

  void declare_exchange(std::string exchange, std::string type, ExchangeOptions options = {},
                        Table arguments = {});
  void delete_exchange(std::string exchange, DeleteExchangeOptions options = {});
  QueueInfo declare_queue(std::string queue, QueueOptions options = {}, Table arguments = {});
  void bind_queue(std::string queue, std::string exchange, std::string binding_key,
                  Table arguments = {});
  void unbind_queue(std::string queue, std::string exchange, std::string binding_key,
                    Table arguments = {});
  std::uint32_t purge_queue(std::string queue);
  std::uint32_t delete_queue(std::string queue, DeleteQueueOptions options = {});

  PublishResult publish(std::string exchange, std::string routing_key, Message message,
                        PublishOptions options = {});
  void publish_unconfirmed(std::string exchange, std::string routing_key, Message message);

  void qos(std::uint16_t prefetch_count, bool global = false);
  Consumer consume(std::string queue, ConsumeOptions options = {}, std::string consumer_tag = {},
                   Table arguments = {});
  std::optional<Delivery> get(std::string queue, GetOptions options = {});
  void ack(const Delivery& delivery, AckOptions options = {});
  void nack(const Delivery& delivery, NackOptions options = {});
  void reject(const Delivery& delivery, bool requeue);
  void close();

 private:
  friend class Connection;
  Channel(std::shared_ptr<Runtime> runtime, client::Channel channel);
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<client::Channel> channel_;
};

class Connection {
 public:
  static Connection connect(std::string_view uri, ConnectionOptions options = ConnectionOptions());
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  // Closes it if it is open; waits for the broker's answer for at most kCloseLimit.
  ~Connection();
  static constexpr std::chrono::milliseconds kCloseLimit{1000};

  Channel open_channel();
  void close();
  bool is_open() const;

 private:
  Connection(std::shared_ptr<Runtime> runtime, client::Connection connection);
  void close_within_limit() noexcept;
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace blocking
}  // namespace stoat::client
