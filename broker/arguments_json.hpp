#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "wire/field_value.hpp"

// Field tables as readable JSON that keeps every value's AMQP type.
//
//   long string (UTF-8)  "text"             64-bit integer (l)  10
//   bool                 true               void                null
//   array                [ … ]              table               { … }
//   any other            {"type": "signedint", "value": 10}
//                        {"type": "timestamp", "value": 1700000000}
//                        {"type": "double", "value": "0.1"}     (text: digits survive unrounded)
//                        {"type": "decimal", "value": {"scale": 2, "digits": 314}}
//                        {"type": "binary", "base64": "AAEC"}
//                        {"type": "longstr", "base64": "/w=="}  (not UTF-8)
//                        {"type": "table", "value": [["key", …], …]}
//
// The last form is for tables that a JSON object cannot hold: with a repeated key, a key that is
// not UTF-8, or one that would itself read as a typed value. A JSON object whose only members are
// "type" (one of the names above) and "value" or "base64" is a typed value, any other is a table;
// a plain number with a fraction or exponent reads as double. So JSON as RabbitMQ writes it reads
// as RabbitMQ reads it.

namespace stoat::broker {

boost::json::value to_json(const wire::Table& arguments);
boost::json::value to_json(const wire::FieldValue& value);

// The form that RabbitMQ's tools show: plain numbers and strings, types not kept.
boost::json::value to_plain_json(const wire::FieldValue& value);

// Throws JsonMistake, which names `where` and the key. Tables nest no deeper than
// wire::kMaxTableDepth.
wire::Table table_from_json(const boost::json::value& json, std::string_view where);
wire::FieldValue field_from_json(const boost::json::value& json, std::string_view where);

}  // namespace stoat::broker
