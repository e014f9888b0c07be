#include "broker/admin/methods.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "broker/admin/json_forms.hpp"

namespace stoat::broker::admin {

namespace json = boost::json;

namespace {

using Value = asio::awaitable<json::value>;

std::uint64_t number_in_range(const JsonFields& fields, std::string_view member,
                              std::uint64_t otherwise, std::uint64_t min, std::uint64_t max) {
  if (fields.find(member) == nullptr) return otherwise;
  const std::uint64_t number = fields.number(member);
  if (number < min || number > max) {
    fields.fail(member, "must be a whole number from " + std::to_string(min) + " to " +
                            std::to_string(max));
  }
  return number;
}

Value login(MethodContext& context, const JsonFields& fields) {
  std::string user = fields.text("user");
  std::string password = fields.text("password");
  if (context.caller) {
    throw Refusal(RefusalCode::precondition_failed,
                  "already logged in as '" + context.caller->user + "'");
  }
  context.caller = co_await context.operations.log_in(std::move(user), std::move(password),
                                                      context.peer_is_loopback);
  json::array tags;
  for (const std::string& tag : context.caller->tags) tags.push_back(json::string(tag));
  co_return json::object{{"user", context.caller->user}, {"tags", std::move(tags)}};
}

Value overview_get(MethodContext& context, const JsonFields&) {
  const Overview overview = co_await context.operations.overview(*context.caller);
  co_return to_json(overview);
}

Value queues_list(MethodContext& context, const JsonFields& fields) {
  QueueQuery query;
  if (fields.find("vhost") != nullptr) query.vhost = fields.text("vhost");
  if (const json::value* after = fields.find("after")) {
    query.after = queue_place_from_json(*after, fields.where() + ": after");
  }
  query.limit =
      static_cast<std::size_t>(number_in_range(fields, "limit", kDefaultPage, 1, kMaxPage));
  const QueuePage page = co_await context.operations.list_queues(*context.caller, std::move(query));
  co_return to_json(page);
}

Value messages_publish(MethodContext& context, const JsonFields& fields) {
  PublishRequest request = publish_request_from_json(fields);
  const bool routed = co_await context.operations.publish(*context.caller, std::move(request));
  co_return json::object{{"routed", routed}};
}

Value subscribe(MethodContext& context, const JsonFields& fields) {
  if (fields.text("topic") != name_of(Topic::stats)) fields.fail("topic", "must be stats");
  const std::uint64_t interval_ms =
      number_in_range(fields, "interval_ms", std::uint64_t{kDefaultInterval.count()},
                      std::uint64_t{kMinInterval.count()}, std::uint64_t{kMaxInterval.count()});
  const auto id = context.subscriptions.add(
      Topic::stats, std::chrono::milliseconds(static_cast<std::int64_t>(interval_ms)));
  if (!id) {
    throw Refusal(RefusalCode::precondition_failed,
                  "a session has at most " + std::to_string(kMaxSubscriptions) + " subscriptions");
  }
  co_return json::object{{"subscription", *id}};
}

Value unsubscribe(MethodContext& context, const JsonFields& fields) {
  const SubscriptionId id = fields.number("subscription");
  if (!context.subscriptions.remove(id)) {
    throw Refusal(RefusalCode::not_found, "no subscription " + std::to_string(id));
  }
  co_return json::object{};
}

constexpr std::string_view kLogin[] = {"user", "password"};
constexpr std::string_view kQueuesList[] = {"vhost", "after", "limit"};
constexpr std::string_view kMessagesPublish[] = {"vhost",   "exchange",         "routing_key",
                                                 "payload", "payload_encoding", "properties"};
constexpr std::string_view kSubscribe[] = {"topic", "interval_ms"};
constexpr std::string_view kUnsubscribe[] = {"subscription"};

constexpr Method kMethods[] = {
    {"login", kLogin, true, login},
    {"messages.publish", kMessagesPublish, false, messages_publish},
    {"overview.get", {}, false, overview_get},
    {"queues.list", kQueuesList, false, queues_list},
    {"subscribe", kSubscribe, false, subscribe},
    {"unsubscribe", kUnsubscribe, false, unsubscribe},
};

}  // namespace

const Method* find_method(std::string_view name) {
  const auto found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                  [name](const Method& method) { return method.name == name; });
  return found == std::end(kMethods) ? nullptr : &*found;
}

std::string_view name_of(Topic topic) {
  switch (topic) {
    case Topic::stats:
      return "stats";
  }
  return {};
}

asio::awaitable<json::object> notification_of(MethodContext& context, Topic topic) {
  json::object notification;
  switch (topic) {
    case Topic::stats: {
      const Overview overview = co_await context.operations.recent_overview(*context.caller);
      notification["stats"] = to_json(overview);
    }
  }
  co_return notification;
}

}  // namespace stoat::broker::admin
