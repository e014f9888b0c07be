#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stoat/client/channel.hpp"
#include "stoat/client/error.hpp"
#include "stoat/client/options.hpp"
#include "stoat/client/uri.hpp"

namespace stoat::client {

// A connection to an AMQP 0-9-1 broker, for coroutines on an executor of yours:
//
//   boost::asio::awaitable<void> hello() {
//     auto connection = co_await Connection::connect("amqp://localhost");
//     auto channel = co_await connection.open_channel();
//     co_await channel.declare_queue("hello");
//     auto result = co_await channel.publish("", "hello", Message("Hello, world"));
//     co_await connection.close();
//   }
//
// Every operation that waits for the broker has a time limit (ConnectionOptions) and throws Error.
// Heartbeats are sent and watched in the background while the executor runs. When the connection
// ends, whatever was pending on it ends with the reason.
//
// Thread: operations may be started from any thread. They run on a strand over the executor that
// connect() was called on; whoever awaits one goes on on their own executor. A handle itself is
// not to be moved or destroyed while another thread uses it.
// Not cancellable: an awaited operation ends by itself, by its time limit or with the connection.
class Connection {
 public:
  // Throws Error: network, timeout, access_refused, protocol_violation, invalid_argument (the URI).
  static boost::asio::awaitable<Connection> connect(
      std::string_view uri, ConnectionOptions options = ConnectionOptions());
  static boost::asio::awaitable<Connection> connect(Uri uri, ConnectionOptions options);

  // Not connected: only to be assigned to or destroyed.
  Connection() = default;
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&& other) noexcept;
  // Closes it in the background if it is open. Never waits.
  ~Connection();

  boost::asio::awaitable<Channel> open_channel();
  // Orderly: returns when the broker has answered. What is pending ends with ErrorKind::closed.
  // Without effect on a connection that has ended.
  boost::asio::awaitable<void> close();

  bool is_open() const;
  // While the broker takes no publishes because it is short of memory or disk: its reason.
  boost::asio::awaitable<std::optional<std::string>> blocked_reason();

 private:
  explicit Connection(std::shared_ptr<class Session> session);
  void close_in_background() noexcept;

  std::shared_ptr<class Session> session_;
};

}  // namespace stoat::client
