#include "broker/admin/door.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <set>
#include <thread>

#include "base/thread_name.hpp"
#include "broker/admin/operations.hpp"
#include "broker/admin/session.hpp"
#include "broker/log.hpp"
#include "broker/peer_address.hpp"

namespace stoat::broker::admin {

namespace {

using asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
// Descriptors have run out, or the like: others may give some back meanwhile.
constexpr std::chrono::milliseconds kAcceptBackOff{100};
// Past every session's own limit for its goodbye.
constexpr std::chrono::seconds kStopTimeout{5};

}  // namespace

struct Door::Impl {
  Impl(std::vector<Worker*> workers, const std::string& address, std::uint16_t port,
       std::uint16_t amqp_port, std::function<void()> on_publish);

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(std::shared_ptr<Session> session);
  void admit(tcp::socket socket);
  bool make_room();

  Operations operations;  // outlives what is left in io
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::uint16_t port = 0;
  std::set<std::shared_ptr<Session>> sessions;
  bool stopping = false;
  std::thread thread;
  std::promise<void> ended;
};

Door::Impl::Impl(std::vector<Worker*> workers, const std::string& address, std::uint16_t wanted,
                 std::uint16_t amqp_port, std::function<void()> on_publish)
    : operations(std::move(workers), amqp_port, std::move(on_publish)) {
  const tcp::endpoint endpoint(asio::ip::make_address(address), wanted);
  try {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& error) {
    throw boost::system::system_error(
        error.code(), "admin endpoint on " + address + ", port " + std::to_string(wanted));
  }
  port = acceptor.local_endpoint().port();
}

asio::awaitable<void> Door::Impl::accept() {
  bool complained = false;
  while (!stopping) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (stopping) co_return;
    if (error == asio::error::connection_aborted) continue;
    if (error) {
      if (!complained) log::error("cannot accept admin connections: " + error.message());
      complained = true;
      pause.expires_after(kAcceptBackOff);
      co_await pause.async_wait(kAwait);
      continue;
    }
    complained = false;
    admit(std::move(socket));
  }
}

void Door::Impl::admit(tcp::socket socket) {
  std::string peer = peer_text(socket);
  if (sessions.size() >= kMaxSessions && !make_room()) {
    log::warn("admin session " + peer + " refused: the limit of " + std::to_string(kMaxSessions) +
              " sessions is reached");
    return;
  }
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const bool loopback = is_loopback(socket);
  auto session = std::make_shared<Session>(std::move(socket), std::move(peer), loopback);
  sessions.insert(session);
  session->limit_time(operations.login_timeout());
  asio::co_spawn(io, serve(std::move(session)), asio::detached);
}

// Sockets that only stand there must not keep a health check out: the one whose time is up first
// goes. False: all have logged in.
bool Door::Impl::make_room() {
  std::shared_ptr<Session> first;
  for (const auto& session : sessions) {
    if (!session->time_limit()) continue;
    if (!first || *session->time_limit() < *first->time_limit()) first = session;
  }
  if (!first) return false;
  log::warn("admin session " + first->peer() + " closed before its login: the limit of " +
            std::to_string(kMaxSessions) + " sessions is reached");
  first->lift_time_limit();
  first->close();
  sessions.erase(first);
  return true;
}

asio::awaitable<void> Door::Impl::serve(std::shared_ptr<Session> session) {
  try {
    co_await serve_http(session, operations);
  } catch (const std::exception& failure) {
    log::error("admin session " + session->peer() + ": " + failure.what());
  }
  session->lift_time_limit();
  session->close();
  sessions.erase(session);
}

Door::Door(std::vector<Worker*> workers, const std::string& address, std::uint16_t port,
           std::uint16_t amqp_port, std::function<void()> on_publish)
    : impl_(std::make_unique<Impl>(std::move(workers), address, port, amqp_port,
                                   std::move(on_publish))) {}

Door::~Door() {
  stop();
}

std::uint16_t Door::port() const {
  return impl_->port;
}

void Door::start() {
  impl_->operations.start();
  asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
  impl_->thread = std::thread([impl = impl_.get()] {
    name_this_thread("admin");
    impl->io.run();
    impl->ended.set_value();
  });
}

void Door::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->stopping = true;
    boost::system::error_code ignored;
    impl->acceptor.close(ignored);
    impl->pause.cancel();
    impl->operations.stop();
    for (const auto& session : impl->sessions) session->stop();
  });
  // The loop ends by itself once the last session has.
  if (impl_->ended.get_future().wait_for(kStopTimeout) != std::future_status::ready) {
    log::warn("admin sessions did not end in time");
    impl_->io.stop();
  }
  impl_->thread.join();
}

}  // namespace stoat::broker::admin
