#include "stoat/client/connection.hpp"

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "client/operation.hpp"

namespace stoat::client {

Connection::Connection(std::shared_ptr<Session> session) : session_(std::move(session)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  if (this != &other) {
    close_in_background();
    session_ = std::move(other.session_);
  }
  return *this;
}

Connection::~Connection() {
  close_in_background();
}

void Connection::close_in_background() noexcept {
  if (const auto session = std::exchange(session_, nullptr))
    session->perform([](ConnectionMachine& machine) { machine.close([](const Result<void>&) {}); });
}

asio::awaitable<Connection> Connection::connect(std::string_view uri, ConnectionOptions options) {
  return connect(Uri::parse(uri), std::move(options));
}

asio::awaitable<Connection> Connection::connect(Uri uri, ConnectionOptions options) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  auto session = std::make_shared<Session>(executor, std::move(uri), std::move(options));
  co_await await_completion<void>(
      session, [](Session& on, Completion<void> opened) { on.connect(std::move(opened)); });
  co_return Connection(std::move(session));
}

asio::awaitable<Channel> Connection::open_channel() {
  const ChannelIncarnation incarnation = co_await await_machine<ChannelIncarnation>(
      session_, [](ConnectionMachine& machine, Completion<ChannelIncarnation> done) {
        machine.open_channel(std::move(done));
      });
  co_return Channel(session_, incarnation.value);
}

asio::awaitable<void> Connection::close() {
  return await_machine<void>(session_, [](ConnectionMachine& machine, Completion<void> done) {
    machine.close(std::move(done));
  });
}

bool Connection::is_open() const {
  return session_ != nullptr && session_->is_open();
}

asio::awaitable<std::optional<std::string>> Connection::blocked_reason() {
  using Reason = std::optional<std::string>;
  return await_machine<Reason>(session_, [](ConnectionMachine& machine, Completion<Reason> done) {
    done(Reason(machine.blocked_reason()));
  });
}

}  // namespace stoat::client
