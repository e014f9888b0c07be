#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "broker/admin/methods.hpp"
#include "broker/admin/operations.hpp"
#include "broker/admin/subscriptions.hpp"

namespace stoat::broker::admin {

// One session of JSON-RPC 2.0: text in, text out. Requests by name or in batches, one at a time in
// the order they came.
//
// Owner: whoever has the socket. Thread: the door's; at most one answer() and one notification()
// are running.
// Errors: none; what a peer gets wrong is answered.
// Does not: know sockets or WebSocket frames.
class RpcSession {
 public:
  // `caller`: who has logged in by other means.
  RpcSession(Operations& operations, bool peer_is_loopback, std::optional<Caller> caller = {});
  RpcSession(const RpcSession&) = delete;
  RpcSession& operator=(const RpcSession&) = delete;

  const std::optional<Caller>& caller() const { return context_.caller; }
  // Longer messages are not to be read.
  std::size_t max_message_bytes() const;

  // The answer to a request or a batch; empty when there is none, as to a notification.
  asio::awaitable<std::string> answer(std::string text);

  // When notification() has something.
  SteadyTime notification_due() const { return subscriptions_.due(); }
  // Empty when nothing is due.
  asio::awaitable<std::string> notification(SteadyTime now);

 private:
  asio::awaitable<std::string> answer_batch(const boost::json::array& requests);
  asio::awaitable<std::string> answer_one(const boost::json::value& request);
  asio::awaitable<boost::json::value> run(std::string_view method,
                                          const boost::json::value* parameters);

  Subscriptions subscriptions_;
  MethodContext context_;
};

}  // namespace stoat::broker::admin
