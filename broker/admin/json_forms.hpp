#pragma once

#include <boost/json/fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "broker/admin/operations.hpp"
#include "broker/json_fields.hpp"

// The plain values of operations.hpp as JSON, in the shape and with the names of RabbitMQ's
// management API.

namespace stoat::broker::admin {

boost::json::object to_json(const QueueInfo& queue);
boost::json::object to_json(const QueuePlace& place);
boost::json::object to_json(const QueuePage& page);
boost::json::object to_json(const Overview& overview);

// These throw JsonMistake.
QueuePlace queue_place_from_json(const boost::json::value& json, const std::string& where);
PublishRequest publish_request_from_json(const JsonFields& fields);
wire::Properties properties_from_json(const boost::json::value& json, const std::string& where);

// Refuses members that are none of `known`: a misspelt one would else be silently left out.
void check_members(const boost::json::object& object, std::span<const std::string_view> known,
                   const std::string& where);

}  // namespace stoat::broker::admin
