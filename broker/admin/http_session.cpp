// The HTTP half of a session: one request, one answer, or the step up to a WebSocket.

#include <boost/asio/as_tuple.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "broker/admin/http_pages.hpp"
#include "broker/admin/session.hpp"
#include "broker/admin/ws_session.hpp"
#include "broker/log.hpp"

namespace stoat::broker::admin {

namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

std::string text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

HttpQuestion question_of(const UpgradeRequest& request) {
  const auto field = [&](http::field name) -> std::optional<std::string> {
    const auto found = request.find(name);
    if (found == request.end()) return std::nullopt;
    return text_of(found->value());
  };
  HttpQuestion question;
  question.method = text_of(request.method_string());
  const std::string target = text_of(request.target());
  question.path = target.substr(0, target.find('?'));
  question.upgrade = beast::websocket::is_upgrade(request);
  question.host = field(http::field::host);
  question.origin = field(http::field::origin);
  question.authorization = field(http::field::authorization);
  return question;
}

http::response<http::string_body> response_of(const HttpReply& reply) {
  http::response<http::string_body> response{static_cast<http::status>(reply.status), 11};
  response.set(http::field::server, "StoatMQ");
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  if (!reply.allow.empty()) response.set(http::field::allow, reply.allow);
  if (reply.ask_for_password) {
    response.set(http::field::www_authenticate, "Basic realm=\"StoatMQ\", charset=\"UTF-8\"");
  }
  if (reply.ask_for_websocket) response.set(http::field::upgrade, "websocket");
  response.keep_alive(false);
  response.body() = reply.body;
  response.prepare_payload();
  return response;
}

// One request and its connection.
class HttpSession {
 public:
  HttpSession(std::shared_ptr<Session> session, Operations& operations)
      : session_(std::move(session)), operations_(operations) {
    parser_.header_limit(kMaxHttpHeaderBytes);
  }

  asio::awaitable<void> run() {
    const auto [error, bytes] =
        co_await http::async_read_header(session_->socket(), buffer_, parser_, kAwait);
    if (error) {
      // Other errors are the connection's, which is over then.
      const bool no_http =
          error.category() == http::make_error_code(http::error::end_of_stream).category();
      if (no_http && error != http::error::end_of_stream && error != http::error::partial_message) {
        co_await send(bad_request(error.message()));
      }
      co_return;
    }
    question_ = question_of(parser_.get());
    if (!question_.upgrade) {
      co_await answer();
    } else if (const auto refused = refuse_upgrade(question_)) {
      log::warn("admin session " + session_->peer() +
                " refused: " + refused->body.substr(0, refused->body.find('\n')));
      co_await send(*refused);
    } else if (buffer_.size() > 0) {
      // It would be lost: the handshake is not over yet.
      co_await send(bad_request("bytes behind the request to open a WebSocket"));
    } else {
      co_await upgrade();
    }
  }

 private:
  asio::awaitable<void> answer() {
    if (question_.path == kReadyPath) {
      co_await operations_.check_ready();
      if (!session_->socket().is_open()) co_return;
    }
    co_await send(page_for(question_));
  }

  asio::awaitable<void> upgrade() {
    std::optional<Caller> caller;
    std::string refused;
    if (question_.authorization) {
      const auto credentials = parse_basic(*question_.authorization);
      if (!credentials) {
        refused = "the Authorization field is no HTTP Basic";
      } else {
        // A refusal takes its time, which is not the peer's.
        session_->lift_time_limit();
        try {
          caller = co_await operations_.log_in(credentials->user, credentials->password,
                                               session_->peer_is_loopback());
        } catch (const Refusal& refusal) {
          refused = refusal.text;
        }
        session_->limit_time(operations_.login_timeout());
      }
    }
    if (!refused.empty()) {
      log::warn("admin session " + session_->peer() + " refused: " + refused);
      co_await send(login_refused(refused));
      co_return;
    }
    co_await serve_websocket(session_, operations_, parser_.get(), std::move(caller));
  }

  asio::awaitable<void> send(const HttpReply& reply) {
    auto response = response_of(reply);
    if (question_.method == "HEAD") response.body().clear();
    const auto [error, bytes] = co_await http::async_write(session_->socket(), response, kAwait);
    if (!error) co_await part();
  }

  // A socket closed with bytes unread resets the connection, and the answer with it.
  asio::awaitable<void> part() {
    session_->limit_time(kCloseTimeout);
    boost::system::error_code ignored;
    session_->socket().shutdown(asio::socket_base::shutdown_send, ignored);
    std::array<char, 4096> dropped;
    std::size_t total = 0;
    while (total < kMaxDroppedBytes) {
      const auto [error, bytes] =
          co_await session_->socket().async_read_some(asio::buffer(dropped), kAwait);
      if (error) co_return;
      total += bytes;
    }
  }

  const std::shared_ptr<Session> session_;
  Operations& operations_;
  beast::flat_buffer buffer_{kMaxHttpHeaderBytes};
  http::request_parser<http::empty_body> parser_;
  HttpQuestion question_;
};

}  // namespace

asio::awaitable<void> serve_http(std::shared_ptr<Session> session, Operations& operations) {
  HttpSession http(std::move(session), operations);
  co_await http.run();
}

}  // namespace stoat::broker::admin
