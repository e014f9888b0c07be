#include "broker/admin/json_forms.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <limits>

#include "broker/arguments_json.hpp"
#include "broker/base64.hpp"
#include "broker/version.hpp"

namespace stoat::broker::admin {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxShortStringBytes = 255;

json::object plain_arguments(const wire::Table& arguments) {
  json::object object;
  for (const auto& [key, value] : arguments.entries()) object[key] = to_plain_json(value);
  return object;
}

// The text members of basic's properties; each is a short string.
struct TextProperty {
  std::string_view name;
  std::optional<std::string> wire::Properties::*member;
};
constexpr TextProperty kTextProperties[] = {
    {"content_type", &wire::Properties::content_type},
    {"content_encoding", &wire::Properties::content_encoding},
    {"correlation_id", &wire::Properties::correlation_id},
    {"reply_to", &wire::Properties::reply_to},
    {"expiration", &wire::Properties::expiration},
    {"message_id", &wire::Properties::message_id},
    {"type", &wire::Properties::type},
    {"user_id", &wire::Properties::user_id},
    {"app_id", &wire::Properties::app_id},
    {"cluster_id", &wire::Properties::cluster_id},
};
constexpr std::string_view kOtherProperties[] = {"headers", "delivery_mode", "priority",
                                                 "timestamp"};

std::uint8_t octet(const JsonFields& fields, std::string_view member) {
  const std::uint64_t number = fields.number(member);
  if (number > std::numeric_limits<std::uint8_t>::max()) {
    fields.fail(member, "must be a whole number from 0 to 255");
  }
  return static_cast<std::uint8_t>(number);
}

}  // namespace

void check_members(const json::object& object, std::span<const std::string_view> known,
                   const std::string& where) {
  for (const auto& member : object) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw JsonMistake(where + ": member '" + std::string(name) + "' is not known");
  }
}

// --- out ---

json::object to_json(const QueueInfo& queue) {
  const QueueStats& stats = queue.stats;
  return {{"name", queue.spec.name},
          {"vhost", queue.spec.vhost},
          {"durable", queue.spec.durable},
          {"auto_delete", queue.spec.auto_delete},
          {"exclusive", queue.spec.exclusive},
          {"arguments", plain_arguments(queue.spec.arguments)},
          {"state", "running"},
          {"messages", stats.ready + stats.unacked},
          {"messages_ready", stats.ready},
          {"messages_unacknowledged", stats.unacked},
          {"message_bytes_ready", stats.ready_bytes},
          {"consumers", stats.consumers},
          {"memory", stats.memory_bytes},
          {"message_stats",
           {{"publish", stats.published},
            {"deliver_get", stats.delivered},
            {"ack", stats.acked},
            {"redeliver", stats.redelivered}}}};
}

json::object to_json(const QueuePlace& place) {
  return {{"vhost", place.first}, {"name", place.second}};
}

json::object to_json(const QueuePage& page) {
  json::array items;
  items.reserve(page.queues.size());
  for (const QueueInfo& queue : page.queues) items.push_back(to_json(queue));
  json::value next = nullptr;
  if (page.next) next = to_json(*page.next);
  return {
      {"items", std::move(items)}, {"item_count", page.queues.size()}, {"next", std::move(next)}};
}

json::object to_json(const Overview& overview) {
  json::object totals{{"vhosts", overview.vhosts},
                      {"exchanges", overview.exchanges},
                      {"queues", overview.queues},
                      {"consumers", overview.consumers}};
  json::object all{{"product_name", "StoatMQ"}, {"product_version", json::string(version())}};
  if (overview.node) {
    const NodeInfo& node = *overview.node;
    totals["connections"] = node.connections;
    totals["channels"] = node.channels;
    all["node"] = node.name;
    all["uptime"] = node.uptime_ms;
    all["mem_used"] = node.memory_used_bytes;
    all["mem_limit"] = node.memory_limit_bytes;
    all["disk_free"] = node.disk_free_bytes;
    all["disk_free_limit"] = node.disk_free_limit_bytes;
    all["alarm"] = node.alarm;
    all["store"] = {{"written", node.puts_written}, {"elided", node.puts_elided}};
    all["listeners"] = json::array{json::object{
        {"protocol", "amqp"}, {"ip_address", node.listen_address}, {"port", node.amqp_port}}};
  }
  all["object_totals"] = std::move(totals);
  all["queue_totals"] = {{"messages", overview.ready + overview.unacked},
                         {"messages_ready", overview.ready},
                         {"messages_unacknowledged", overview.unacked}};
  all["message_stats"] = {{"publish", overview.published},
                          {"deliver_get", overview.delivered},
                          {"ack", overview.acked}};
  return all;
}

// --- in ---

QueuePlace queue_place_from_json(const json::value& value, const std::string& where) {
  const JsonFields fields(value, where);
  static constexpr std::string_view kKnown[] = {"vhost", "name"};
  check_members(value.get_object(), kKnown, where);
  return {fields.text("vhost"), fields.text("name")};
}

wire::Properties properties_from_json(const json::value& value, const std::string& where) {
  const JsonFields fields(value, where);
  std::vector<std::string_view> known(std::begin(kOtherProperties), std::end(kOtherProperties));
  for (const TextProperty& property : kTextProperties) known.push_back(property.name);
  check_members(value.get_object(), known, where);

  wire::Properties properties;
  for (const TextProperty& property : kTextProperties) {
    if (fields.find(property.name) == nullptr) continue;
    std::string text = fields.text(property.name);
    if (text.size() > kMaxShortStringBytes) fields.fail(property.name, "is longer than 255 bytes");
    properties.*property.member = std::move(text);
  }
  if (const json::value* headers = fields.find("headers")) {
    properties.headers = table_from_json(*headers, where + ": headers");
  }
  if (fields.find("delivery_mode")) properties.delivery_mode = octet(fields, "delivery_mode");
  if (fields.find("priority")) properties.priority = octet(fields, "priority");
  if (fields.find("timestamp")) properties.timestamp = fields.number("timestamp");
  return properties;
}

PublishRequest publish_request_from_json(const JsonFields& fields) {
  PublishRequest request;
  request.vhost = fields.text("vhost");
  request.exchange = fields.text("exchange");
  // As in RabbitMQ's forms, where the default exchange goes by this name.
  if (request.exchange == "amq.default") request.exchange.clear();
  request.routing_key = fields.text("routing_key");
  request.payload = fields.text("payload");
  const std::string encoding = fields.text_or("payload_encoding", "string");
  if (encoding == "base64") {
    auto bytes = base64_decode(request.payload);
    if (!bytes) fields.fail("payload", "is no base64");
    request.payload = std::move(*bytes);
  } else if (encoding != "string") {
    fields.fail("payload_encoding", "must be string or base64");
  }
  if (const json::value* properties = fields.find("properties")) {
    request.properties = properties_from_json(*properties, fields.where() + ": properties");
  }
  return request;
}

}  // namespace stoat::broker::admin
