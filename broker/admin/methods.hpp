#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/json/fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "broker/admin/operations.hpp"
#include "broker/admin/subscriptions.hpp"
#include "broker/json_fields.hpp"

namespace stoat::broker::admin {

// What a method works with: one session's state.
struct MethodContext {
  Operations& operations;
  Subscriptions& subscriptions;
  const bool peer_is_loopback;
  std::optional<Caller> caller;  // empty: not logged in
};

// A method of the JSON-RPC door. It may throw Refusal and JsonMistake.
struct Method {
  std::string_view name;
  std::span<const std::string_view> parameters;  // others are refused
  bool before_login = false;
  asio::awaitable<boost::json::value> (*run)(MethodContext& context, const JsonFields& parameters);
};

// nullptr: there is none.
const Method* find_method(std::string_view name);

// What a notification on the topic has to tell of a notification on the topic.
asio::awaitable<boost::json::object> notification_of(MethodContext& context, Topic topic);
std::string_view name_of(Topic topic);

}  // namespace stoat::broker::admin
