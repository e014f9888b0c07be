#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <memory>
#include <optional>

#include "broker/admin/operations.hpp"
#include "broker/admin/session.hpp"

// Brings Beast in: for http_session.cpp and ws_session.cpp only.

namespace stoat::broker::admin {

using UpgradeRequest = boost::beast::http::request<boost::beast::http::empty_body>;

// JSON-RPC over the WebSocket that the request asks for. Returns when the connection is over.
asio::awaitable<void> serve_websocket(std::shared_ptr<Session> session, Operations& operations,
                                      const UpgradeRequest& request, std::optional<Caller> caller);

}  // namespace stoat::broker::admin
