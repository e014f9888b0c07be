#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "broker/admin/operations.hpp"

namespace stoat::broker::admin {

// One connection to the admin port: its socket and its time limit, whatever is spoken on it.
//
// Owner: its coroutines, shared. Thread: the door's.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::ip::tcp::socket socket, std::string peer, bool peer_is_loopback)
      : socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        peer_(std::move(peer)),
        peer_is_loopback_(peer_is_loopback) {}

  asio::ip::tcp::socket& socket() { return socket_; }
  const std::string& peer() const { return peer_; }  // address and port
  bool peer_is_loopback() const { return peer_is_loopback_; }

  // The socket is closed unless the limit is lifted or set anew in time.
  void limit_time(std::chrono::milliseconds limit);
  void lift_time_limit();
  // Of one that has not logged in, or not yet asked: when it has to have done so.
  std::optional<std::chrono::steady_clock::time_point> time_limit() const { return time_limit_; }
  void close();

  // What says goodbye when the door stops; without it the socket is closed.
  void set_goodbye(std::function<void()> goodbye) { goodbye_ = std::move(goodbye); }
  void stop();

 private:
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  const std::string peer_;
  const bool peer_is_loopback_;
  std::function<void()> goodbye_;
  std::optional<std::chrono::steady_clock::time_point> time_limit_;
};

// Reads one HTTP request and answers it; an upgrade goes on as a WebSocket. Ends with the
// connection; throws nothing that a peer could cause.
asio::awaitable<void> serve_http(std::shared_ptr<Session> session, Operations& operations);

}  // namespace stoat::broker::admin
