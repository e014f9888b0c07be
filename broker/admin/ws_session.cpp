#include "broker/admin/ws_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "broker/admin/rpc.hpp"
#include "broker/log.hpp"

namespace stoat::broker::admin {

namespace beast = boost::beast;
namespace websocket = beast::websocket;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
// A read buffer that has grown past this is given back after its message.
constexpr std::size_t kKeptBufferBytes = 64 * 1024;

// A reader and a writer over one WebSocket. The reader runs requests one after the other and hands
// each answer to the writer through a slot; the writer makes notifications when it has nothing else
// to write. So nothing piles up for a peer that does not read: its requests wait in its socket and
// its notifications are not made.
//
// Owner: its two coroutines, shared. Thread: the door's.
class WsSession : public std::enable_shared_from_this<WsSession> {
 public:
  WsSession(std::shared_ptr<Session> session, Operations& operations, std::optional<Caller> caller)
      : session_(std::move(session)),
        ws_(session_->socket()),
        rpc_(operations, session_->peer_is_loopback(), std::move(caller)),
        wake_reader_(session_->socket().get_executor(), SteadyTime::max()),
        wake_writer_(session_->socket().get_executor(), SteadyTime::max()) {}

  asio::awaitable<void> run(const UpgradeRequest& request) {
    ws_.set_option(websocket::stream_base::timeout{kCloseTimeout, kIdleTimeout, true});
    ws_.set_option(websocket::stream_base::decorator([](websocket::response_type& response) {
      response.set(beast::http::field::server, "StoatMQ");
    }));
    ws_.auto_fragment(false);
    const auto [error] = co_await ws_.async_accept(request, kAwait);
    if (error) co_return;
    ws_.text(true);
    if (rpc_.caller()) note_login();
    session_->set_goodbye([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->close(websocket::close_code::going_away);
    });
    asio::co_spawn(
        session_->socket().get_executor(), [self = shared_from_this()] { return self->write(); },
        asio::detached);
    try {
      co_await read();
    } catch (const std::exception& failure) {
      log::error("admin session " + session_->peer() + ": " + failure.what());
      session_->close();
    }
    reader_done_ = true;
    wake_writer_.cancel();
    while (!writer_done_) co_await wait(wake_reader_, SteadyTime::max());
    session_->set_goodbye({});
    if (rpc_.caller()) log::info("admin session " + session_->peer() + " closed");
  }

 private:
  asio::awaitable<void> read() {
    beast::flat_buffer buffer;
    for (;;) {
      while (!answer_.empty() && !writer_done_) co_await wait(wake_reader_, SteadyTime::max());
      ws_.read_message_max(rpc_.max_message_bytes());
      const auto [error, bytes] = co_await ws_.async_read(buffer, kAwait);
      if (error || writer_done_) co_return;
      if (!ws_.got_text()) {
        close(websocket::close_code::unknown_data);
        co_return;
      }
      std::string text(static_cast<const char*>(buffer.data().data()), buffer.size());
      buffer.clear();
      if (buffer.capacity() > kKeptBufferBytes) buffer.shrink_to_fit();
      const bool knew_caller = rpc_.caller().has_value();
      answer_ = co_await rpc_.answer(std::move(text));
      if (rpc_.caller() && !knew_caller) note_login();
      wake_writer_.cancel();
    }
  }

  asio::awaitable<void> write() {
    try {
      co_await write_all();
    } catch (const std::exception& failure) {
      log::error("admin session " + session_->peer() + ": " + failure.what());
    }
    session_->close();
    writer_done_ = true;
    wake_reader_.cancel();
  }

  asio::awaitable<void> write_all() {
    for (;;) {
      std::string text = std::exchange(answer_, {});
      if (!text.empty()) {
        wake_reader_.cancel();
      } else if (close_code_) {
        co_await ws_.async_close(*close_code_, kAwait);
        co_return;
      } else if (reader_done_) {
        co_return;
      } else {
        text = co_await rpc_.notification(std::chrono::steady_clock::now());
      }
      if (!text.empty()) {
        const auto [error, bytes] = co_await ws_.async_write(asio::buffer(text), kAwait);
        if (error) co_return;
      } else if (answer_.empty() && !close_code_ && !reader_done_) {
        co_await wait(wake_writer_, rpc_.notification_due());
      }
    }
  }

  static asio::awaitable<void> wait(asio::steady_timer& timer, SteadyTime until) {
    timer.expires_at(until);
    co_await timer.async_wait(kAwait);
  }

  void close(websocket::close_code code) {
    session_->limit_time(kCloseTimeout);
    close_code_ = code;
    wake_writer_.cancel();
  }

  void note_login() {
    if (!close_code_) session_->lift_time_limit();
    log::info("admin session " + session_->peer() + " of user '" + rpc_.caller()->user +
              "' opened");
  }

  const std::shared_ptr<Session> session_;
  websocket::stream<asio::ip::tcp::socket&, false> ws_;
  RpcSession rpc_;
  std::string answer_;  // for the writer
  std::optional<websocket::close_code> close_code_;
  bool reader_done_ = false;
  bool writer_done_ = false;
  asio::steady_timer wake_reader_;
  asio::steady_timer wake_writer_;
};

}  // namespace

asio::awaitable<void> serve_websocket(std::shared_ptr<Session> session, Operations& operations,
                                      const UpgradeRequest& request, std::optional<Caller> caller) {
  const auto websocket =
      std::make_shared<WsSession>(std::move(session), operations, std::move(caller));
  co_await websocket->run(request);
}

}  // namespace stoat::broker::admin
