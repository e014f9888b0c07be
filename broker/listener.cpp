#include "broker/listener.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <stdexcept>

#include "broker/log.hpp"

namespace stoat::broker {

namespace {

using asio::ip::tcp;

// Descriptors have run out, or the like: others may give some back meanwhile.
constexpr std::chrono::milliseconds kAcceptBackOff{100};

}  // namespace

Listener::Listener(std::vector<Worker*> workers, const std::string& address, std::uint16_t port,
                   std::uint32_t max_connections, std::function<void()> on_connection)
    : workers_(std::move(workers)),
      acceptor_(workers_.front()->io()),
      pause_(workers_.front()->io()),
      max_connections_(max_connections),
      on_connection_(std::move(on_connection)) {
  const tcp::endpoint endpoint(asio::ip::make_address(address), port);
  boost::system::error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw std::runtime_error("cannot listen on " + address + ":" + std::to_string(port) + ": " +
                             error.message());
  }
  port_ = acceptor_.local_endpoint().port();
}

void Listener::start() {
  asio::co_spawn(workers_.front()->io(), accept_loop(), asio::detached);
}

void Listener::stop() {
  asio::post(workers_.front()->io(), [this] {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
}

asio::awaitable<void> Listener::accept_loop() {
  constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
  bool complained = false;
  while (!stopped_) {
    Worker& worker = *workers_[next_connection_ % workers_.size()];
    auto [error, socket] = co_await acceptor_.async_accept(worker.io(), kAwait);
    if (stopped_) co_return;
    if (error == asio::error::connection_aborted) continue;
    if (error) {
      if (!complained) log::error("cannot accept connections: " + error.message());
      complained = true;
      pause_.expires_after(kAcceptBackOff);
      co_await pause_.async_wait(kAwait);
      continue;
    }
    complained = false;
    if (open_connections() >= max_connections_) {
      log::warn("connection refused: the limit of " + std::to_string(max_connections_) +
                " connections is reached");
      boost::system::error_code ignored;
      socket.close(ignored);
      continue;
    }
    const ConnectionId id(next_connection_++);
    auto moved = std::make_shared<tcp::socket>(std::move(socket));
    ++*on_their_way_;
    worker.post([&worker, moved, id, on_their_way = on_their_way_] {
      worker.adopt(std::move(*moved), id);
      --*on_their_way;
    });
    on_connection_();
  }
}

std::size_t Listener::open_connections() const {
  std::size_t count = *on_their_way_;
  for (const Worker* worker : workers_) count += worker->connection_count();
  return count;
}

}  // namespace stoat::broker
