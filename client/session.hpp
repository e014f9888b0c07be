#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/connection_machine.hpp"

namespace stoat::client {

namespace asio = boost::asio;

// A ConnectionMachine with its socket and its timer: resolves, connects, reads, writes, keeps time.
//
// Owner: shared by the handles of the connection, its channels and consumers, and by its own
// pending reads, writes and waits; so it lives until the connection has ended and the last handle
// is gone.
// Thread: everything runs on its strand over the executor it was given; perform() and is_open()
// may be called from any thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Strand = asio::strand<asio::any_io_executor>;

  Session(asio::any_io_executor executor, Uri uri, ConnectionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Strand& strand() const { return strand_; }
  bool is_open() const { return open_.load(std::memory_order_relaxed); }

  // Resolves, connects and logs in, within connect_timeout.
  void connect(Completion<void> opened);

  // Runs f(ConnectionMachine&) on the strand, at once where possible.
  template <class F>
  void perform(F f) {
    asio::dispatch(strand_, [self = shared_from_this(), f = std::move(f)]() mutable {
      self->machine_.set_now(std::chrono::steady_clock::now());
      f(self->machine_);
      self->after_work();
    });
  }

 private:
  asio::awaitable<void> run(Completion<void> opened);
  // Why there is no TCP connection; nullopt when there is.
  asio::awaitable<std::optional<Error>> connect_socket();
  asio::awaitable<void> read();
  // What the machine asks for after it was used: writing, a timer, reading again, closing.
  void after_work();
  void flush();
  void written(const boost::system::error_code& error);
  void arm_timer();
  void on_timer();
  void close_socket();

  Strand strand_;
  const std::string host_;
  const std::uint16_t port_;
  ConnectionMachine machine_;
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  SteadyTime armed_for_ = SteadyTime::max();
  SteadyTime connect_deadline_;
  SteadyTime linger_deadline_ = SteadyTime::max();  // last words must be written by then
  bool connecting_ = true;
  bool writing_ = false;
  bool spoke_last_ = false;  // something was written after the connection had ended
  bool reading_held_back_ = false;
  asio::steady_timer reading_resumed_;  // cancelled to go on reading
  std::vector<char> read_buffer_;
  std::string write_buffer_;
  std::atomic<bool> open_{false};
};

}  // namespace stoat::client
