#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/worker.hpp"

namespace stoat::broker {

// Accepts connections for AMQP and deals them out to the workers in turn.
// Owner: Server. Thread: worker 0's; the constructor and port() from any.
class Listener {
 public:
  // Binds and listens. Throws std::runtime_error that names the address and what is wrong with it.
  Listener(std::vector<Worker*> workers, const std::string& address, std::uint16_t port,
           std::uint32_t max_connections, std::function<void()> on_connection);

  std::uint16_t port() const { return port_; }
  void start();
  // Any thread: no connection is accepted after it returned and worker 0 ran once.
  void stop();

 private:
  asio::awaitable<void> accept_loop();
  // With those that are on their way to their worker.
  std::size_t open_connections() const;

  std::vector<Worker*> workers_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::uint32_t max_connections_;
  const std::function<void()> on_connection_;  // runs on worker 0's thread
  std::uint16_t port_ = 0;
  std::uint64_t next_connection_ = 1;
  // Shared with what a worker may run after this listener is gone.
  const std::shared_ptr<std::atomic<std::size_t>> on_their_way_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  bool stopped_ = false;
};

}  // namespace stoat::broker
