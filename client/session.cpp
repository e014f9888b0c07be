#include "client/session.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace stoat::client {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadBufferBytes = 64 * 1024;
// How long a connection that has ended may take to write connection.close or close-ok.
constexpr std::chrono::seconds kLinger{2};
constexpr auto kAwaitTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

Session::Session(asio::any_io_executor executor, Uri uri, ConnectionOptions options)
    : strand_(asio::make_strand(std::move(executor))),
      host_(uri.host),
      port_(uri.port),
      machine_(std::move(uri), std::move(options)),
      resolver_(strand_),
      socket_(strand_),
      timer_(strand_),
      reading_resumed_(strand_),
      read_buffer_(kReadBufferBytes) {}

void Session::connect(Completion<void> opened) {
  asio::co_spawn(
      strand_,
      [self = shared_from_this(), opened = std::move(opened)]() mutable {
        return self->run(std::move(opened));
      },
      asio::detached);
}

asio::awaitable<void> Session::run(Completion<void> opened) {
  const auto self = shared_from_this();
  connect_deadline_ = steady_clock::now() + machine_.options().connect_timeout;
  arm_timer();
  const std::optional<Error> error = co_await connect_socket();
  connecting_ = false;
  if (error) {
    close_socket();
    opened(*error);
    co_return;
  }
  machine_.start(steady_clock::now(), connect_deadline_, std::move(opened));
  after_work();
  co_await read();
}

asio::awaitable<std::optional<Error>> Session::connect_socket() {
  const std::string where = host_ + ':' + std::to_string(port_);
  const auto [resolve_error, endpoints] =
      co_await resolver_.async_resolve(host_, std::to_string(port_), kAwaitTuple);
  boost::system::error_code error = resolve_error;
  if (!error && steady_clock::now() < connect_deadline_) {
    const auto [connect_error, endpoint] =
        co_await asio::async_connect(socket_, endpoints, kAwaitTuple);
    error = connect_error;
  }
  if (steady_clock::now() >= connect_deadline_)
    co_return Error(ErrorKind::timeout, "no connection to " + where + " within the time limit");
  if (error)
    co_return Error(ErrorKind::network, "cannot connect to " + where + ": " + error.message());
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  co_return std::nullopt;
}

asio::awaitable<void> Session::read() {
  while (socket_.is_open()) {
    if (!machine_.wants_read()) {
      reading_held_back_ = true;
      reading_resumed_.expires_at(SteadyTime::max());
      co_await reading_resumed_.async_wait(kAwaitTuple);
      reading_held_back_ = false;
      continue;
    }
    const auto [error, size] =
        co_await socket_.async_read_some(asio::buffer(read_buffer_), kAwaitTuple);
    const SteadyTime now = steady_clock::now();
    if (error) {
      machine_.socket_lost(error.message(), now);
      close_socket();
    } else {
      machine_.receive({read_buffer_.data(), size}, now);
    }
    after_work();
  }
}

void Session::after_work() {
  if (connecting_) return;
  open_.store(machine_.is_open(), std::memory_order_relaxed);
  if (machine_.finished() && linger_deadline_ == SteadyTime::max())
    linger_deadline_ = steady_clock::now() + kLinger;
  flush();
  arm_timer();
  if (reading_held_back_ && (machine_.wants_read() || !socket_.is_open()))
    reading_resumed_.cancel();
}

void Session::flush() {
  if (writing_ || !socket_.is_open()) return;
  if (!machine_.has_output()) {
    if (!machine_.finished()) return;
    boost::system::error_code ignored;
    if (!spoke_last_) return close_socket();
    // Closing at once could take the last words back, should the peer's be unread; read() goes on
    // until the peer closes, or the timer does.
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    return;
  }
  spoke_last_ = machine_.finished();
  machine_.take_output(write_buffer_);
  writing_ = true;
  asio::async_write(socket_, asio::buffer(write_buffer_),
                    [self = shared_from_this()](const boost::system::error_code& error,
                                                std::size_t) { self->written(error); });
}

void Session::written(const boost::system::error_code& error) {
  writing_ = false;
  const SteadyTime now = steady_clock::now();
  if (error) {
    machine_.socket_lost(error.message(), now);
    close_socket();
  } else {
    machine_.output_written(now);
  }
  after_work();
}

void Session::arm_timer() {
  SteadyTime due = connecting_ ? connect_deadline_ : machine_.next_deadline();
  if (machine_.finished()) due = socket_.is_open() ? linger_deadline_ : SteadyTime::max();
  if (due >= armed_for_) return;
  armed_for_ = due;
  timer_.expires_at(due);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->on_timer();
  });
}

void Session::on_timer() {
  armed_for_ = SteadyTime::max();
  if (connecting_) {
    // connect_socket() sees that its time has passed.
    resolver_.cancel();
    close_socket();
    return;
  }
  const SteadyTime now = steady_clock::now();
  if (machine_.finished() && linger_deadline_ <= now) close_socket();
  machine_.tick(now);
  after_work();
}

void Session::close_socket() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (!connecting_) timer_.cancel();
}

}  // namespace stoat::client
