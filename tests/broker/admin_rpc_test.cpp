// JSON-RPC as text in and text out, over a broker without sockets.

#include "broker/admin/rpc.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "broker/admin/limits.hpp"
#include "tests/broker/admin_broker.hpp"

namespace stoat::broker::admin {
namespace {

namespace json = boost::json;
using test::AdminBroker;

constexpr const char* kLogin =
    R"({"jsonrpc":"2.0","id":0,"method":"login","params":{"user":"guest","password":"guest"}})";

// One session, spoken to in text.
class Client {
 public:
  explicit Client(AdminBroker& broker, bool loopback = true)
      : broker_(broker), session_(broker.operations(), loopback) {}

  std::string say(const std::string& text) { return broker_.await(session_.answer(text)); }

  json::value call(const std::string& method, const std::string& params) {
    const std::string answer =
        say(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}");
    return json::parse(answer);
  }
  json::value result(const std::string& method, const std::string& params = "{}") {
    const json::value answer = call(method, params);
    const json::value* result = answer.get_object().if_contains("result");
    if (result != nullptr) return *result;
    ADD_FAILURE() << method << " " << params << ": " << answer;
    return json::object();
  }
  // "404 no vhost 'x'"
  std::string error(const std::string& method, const std::string& params) {
    const json::value answer = call(method, params);
    const json::value* error = answer.get_object().if_contains("error");
    if (error == nullptr) return "no error: " + json::serialize(answer);
    return std::to_string(error->at("code").as_int64()) + " " +
           std::string(error->at("message").as_string());
  }
  void log_in(const std::string& user) {
    result("login", R"({"user":")" + user + R"(","password":")" + user + R"("})");
  }

  RpcSession& session() { return session_; }
  std::string notification(SteadyTime now) { return broker_.await(session_.notification(now)); }

 private:
  AdminBroker& broker_;
  RpcSession session_;
};

std::string error_text(int code, const std::string& message, const std::string& id = "null") {
  return R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")" +
         message + R"("},"id":)" + id + "}";
}

// --- the protocol ---

TEST(AdminRpc, AnswersWhatIsNoRequest) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  const struct {
    const char* name;
    std::string text;
    std::string answer;
  } cases[] = {
      {"no JSON", "hello", error_text(-32700, "Parse error: line 1, column 1: syntax error")},
      {"empty text", "", error_text(-32700, "Parse error: line 1, column 1: incomplete JSON")},
      {"cut short", R"({"jsonrpc":"2.0")",
       error_text(-32700, "Parse error: line 1, column 17: incomplete JSON")},
      {"text behind", R"({} {})",
       error_text(-32700, "Parse error: line 1, column 4: text after the document")},
      {"a number", "7", error_text(-32600, "Invalid Request: a request is an object")},
      {"no version", R"({"method":"overview.get","id":1})",
       error_text(-32600, R"(Invalid Request: member 'jsonrpc' must be \"2.0\")", "1")},
      {"version 1", R"({"jsonrpc":"1.0","method":"overview.get","id":"a"})",
       error_text(-32600, R"(Invalid Request: member 'jsonrpc' must be \"2.0\")", R"("a")")},
      {"no method", R"({"jsonrpc":"2.0","id":1})",
       error_text(-32600, "Invalid Request: member 'method' must be a string", "1")},
      {"method a number", R"({"jsonrpc":"2.0","method":1,"id":1})",
       error_text(-32600, "Invalid Request: member 'method' must be a string", "1")},
      {"id an object", R"({"jsonrpc":"2.0","method":"overview.get","id":{}})",
       error_text(-32600, "Invalid Request: member 'id' must be a string, a number or null")},
      {"params a string", R"({"jsonrpc":"2.0","method":"overview.get","params":"x","id":1})",
       error_text(-32600, "Invalid Request: member 'params' must be an object or an array", "1")},
      {"unknown method", R"({"jsonrpc":"2.0","method":"queues.fly","id":1})",
       error_text(-32601, "Method not found: 'queues.fly'", "1")},
      {"params by position", R"({"jsonrpc":"2.0","method":"queues.list","params":["/"],"id":1})",
       error_text(-32602, "Invalid params: parameters are given by name", "1")},
      {"misspelt parameter",
       R"({"jsonrpc":"2.0","method":"queues.list","params":{"limt":1},"id":null})",
       error_text(-32602, "Invalid params: queues.list: member 'limt' is not known")},
      {"empty batch", "[]", error_text(-32600, "Invalid Request: a batch is of 1 to 100 requests")},
      {"batch of nothing useful", "[1,2]",
       "[" + error_text(-32600, "Invalid Request: a request is an object") + "," +
           error_text(-32600, "Invalid Request: a request is an object") + "]"},
  };
  for (const auto& c : cases) EXPECT_EQ(client.say(c.text), c.answer) << c.name;
}

TEST(AdminRpc, RefusesDeepJson) {
  AdminBroker broker;
  Client client(broker);
  const json::value answer = json::parse(client.say(std::string(4000, '[')));
  EXPECT_EQ(answer.at("error").at("code").as_int64(), -32700);
}

TEST(AdminRpc, EchoesEveryKindOfId) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  for (const char* id : {"7", "-1", R"("a\"b")", "null", "18446744073709551615"}) {
    const std::string answer = client.say(
        std::string(
            R"({"jsonrpc":"2.0","method":"unsubscribe","params":{"subscription":9},"id":)") +
        id + "}");
    EXPECT_EQ(answer, error_text(404, "no subscription 9", id));
  }
}

TEST(AdminRpc, DoesNotAnswerNotifications) {
  AdminBroker broker;
  broker.declare("/", "orders");
  Client client(broker);
  client.log_in("guest");
  EXPECT_EQ(client.say(R"({"jsonrpc":"2.0","method":"no.such"})"), "");
  EXPECT_EQ(client.say(R"({"jsonrpc":"2.0","method":"messages.publish","params":{"vhost":"/",
      "exchange":"","routing_key":"orders","payload":"quiet"}})"),
            "");
  EXPECT_EQ(client.say(R"([{"jsonrpc":"2.0","method":"overview.get"}])"), "");
  // It was done nonetheless.
  const MessagePtr message = broker.take("/", "orders");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body(), "quiet");
}

TEST(AdminRpc, AnswersABatchInOrder) {
  AdminBroker broker;
  Client client(broker);
  // The login counts for what stands behind it.
  const json::value answers = json::parse(client.say(
      R"([{"jsonrpc":"2.0","id":1,"method":"queues.list"},)" + std::string(kLogin) +
      R"(,{"jsonrpc":"2.0","method":"overview.get"},{"jsonrpc":"2.0","id":2,"method":"queues.list"},5])"));
  ASSERT_EQ(answers.as_array().size(), 4u) << answers;
  EXPECT_EQ(answers.at(0).at("error").at("code").as_int64(), 401);
  EXPECT_EQ(answers.at(0).at("id").as_int64(), 1);
  EXPECT_EQ(answers.at(1).at("result").at("user").as_string(), "guest");
  EXPECT_EQ(answers.at(2).at("result").at("item_count").as_int64(), 0);
  EXPECT_EQ(answers.at(3).at("error").at("code").as_int64(), -32600);
}

TEST(AdminRpc, RefusesALongBatch) {
  AdminBroker broker;
  Client client(broker);
  std::string batch = "[1";
  for (std::size_t i = 0; i < kMaxBatchRequests; ++i) batch += ",1";
  EXPECT_EQ(client.say(batch + "]"),
            error_text(-32600, "Invalid Request: a batch is of 1 to 100 requests"));
}

// --- login ---

TEST(AdminRpc, AsksForALoginFirst) {
  AdminBroker broker;
  Client client(broker);
  EXPECT_EQ(client.session().max_message_bytes(), kMaxLoginMessageBytes);
  for (const char* method :
       {"overview.get", "queues.list", "messages.publish", "subscribe", "unsubscribe", "no.such"}) {
    EXPECT_EQ(client.error(method, "{}"), "401 log in first") << method;
  }
  const json::value who = client.result("login", R"({"user":"guest","password":"guest"})");
  EXPECT_EQ(json::serialize(who), R"({"user":"guest","tags":["administrator"]})");
  EXPECT_EQ(client.session().max_message_bytes(), kMaxMessageBytes);
  client.result("overview.get");
  EXPECT_EQ(client.error("login", R"({"user":"ops","password":"ops"})"),
            "406 already logged in as 'guest'");
}

TEST(AdminRpc, RefusesLogins) {
  AdminBroker broker;
  const struct {
    const char* name;
    const char* params;
    bool loopback;
    const char* error;
  } cases[] = {
      {"wrong password", R"({"user":"guest","password":"geust"})", true,
       "401 wrong user name or password"},
      {"unknown user", R"({"user":"nobody","password":"x"})", true,
       "401 wrong user name or password"},
      {"no tag", R"({"user":"app","password":"app"})", true,
       "401 user 'app' has none of the tags administrator, monitoring, policymaker and "
       "management"},
      {"guest from afar", R"({"user":"guest","password":"guest"})", false,
       "401 user 'guest' may only log in from the loopback interface"},
      {"no password", R"({"user":"guest"})", true,
       "-32602 Invalid params: login: member 'password' is missing"},
      {"password a number", R"({"user":"guest","password":1})", true,
       "-32602 Invalid params: login: member 'password' must be a string"},
  };
  for (const auto& c : cases) {
    Client client(broker, c.loopback);
    EXPECT_EQ(client.error("login", c.params), c.error) << c.name;
    EXPECT_FALSE(client.session().caller()) << c.name;
  }
  Client far(broker, false);
  far.log_in("ops");
}

TEST(AdminRpc, FollowsChangesOfAUser) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("ops");
  client.result("overview.get");
  Definitions definitions;
  definitions.users = {{"ops", "", std::string("rabbit_password_hashing_sha256"), {}}};
  broker.import(std::move(definitions));
  EXPECT_EQ(client.error("overview.get", "{}"), "403 user 'ops' may not use the admin door");
  EXPECT_EQ(client.error("queues.list", "{}"), "403 user 'ops' may not use the admin door");
  EXPECT_EQ(client.error("messages.publish",
                         R"({"vhost":"/","exchange":"","routing_key":"q","payload":""})"),
            "403 user 'ops' may not use the admin door");
}

// --- queues and overview ---

TEST(AdminRpc, ListsAQueue) {
  AdminBroker broker;
  broker.declare("/", "orders",
                 {{"x-max-length", std::int32_t{1000}}, {"x-dead-letter-exchange", "dead"}});
  Client client(broker);
  client.log_in("guest");
  const std::string publish =
      R"({"vhost":"/","exchange":"","routing_key":"orders","payload":"12345"})";
  client.result("messages.publish", publish);
  client.result("messages.publish", publish);
  broker.take("/", "orders");
  json::value page = client.result("queues.list");
  ASSERT_EQ(page.at("items").as_array().size(), 1u) << page;
  json::object& queue = page.at("items").as_array()[0].as_object();
  EXPECT_GT(queue.at("memory").as_int64(), 0);
  EXPECT_GT(queue.at("message_bytes_ready").as_int64(), 5);
  queue.erase("memory");
  queue.erase("message_bytes_ready");
  EXPECT_EQ(page, json::parse(R"({"items":[{"name":"orders","vhost":"/","durable":true,
      "auto_delete":false,"exclusive":false,
      "arguments":{"x-max-length":1000,"x-dead-letter-exchange":"dead"},"state":"running",
      "messages":1,"messages_ready":1,"messages_unacknowledged":0,"consumers":0,
      "message_stats":{"publish":2,"deliver_get":1,"ack":1,"redeliver":0}}],
      "item_count":1,"next":null})"))
      << page;
}

std::vector<std::string> names_of(const json::value& page) {
  std::vector<std::string> names;
  for (const json::value& item : page.at("items").as_array()) {
    names.push_back(std::string(item.at("vhost").as_string()) + ":" +
                    std::string(item.at("name").as_string()));
  }
  return names;
}

TEST(AdminRpc, PagesThroughQueues) {
  AdminBroker broker;
  for (const char* name : {"b", "a", "c"}) broker.declare("/", name);
  for (const char* name : {"a", "x"}) broker.declare("other", name);
  Client client(broker);
  client.log_in("ops");
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(client.result("queues.list")),
            (Names{"/:a", "/:b", "/:c", "other:a", "other:x"}));
  EXPECT_EQ(names_of(client.result("queues.list", R"({"vhost":"/"})")),
            (Names{"/:a", "/:b", "/:c"}));
  const json::value first = client.result("queues.list", R"({"limit":2})");
  EXPECT_EQ(names_of(first), (Names{"/:a", "/:b"}));
  EXPECT_EQ(json::serialize(first.at("next")), R"({"vhost":"/","name":"b"})");
  const json::value second = client.result(
      "queues.list", R"({"limit":2,"after":)" + json::serialize(first.at("next")) + "}");
  EXPECT_EQ(names_of(second), (Names{"/:c", "other:a"}));
  const json::value last = client.result(
      "queues.list", R"({"limit":2,"after":)" + json::serialize(second.at("next")) + "}");
  EXPECT_EQ(names_of(last), (Names{"other:x"}));
  EXPECT_TRUE(last.at("next").is_null());
  // A place that is gone, or before the vhost, still has one behind it.
  EXPECT_EQ(names_of(client.result("queues.list", R"({"after":{"vhost":"/","name":"bb"}})")),
            (Names{"/:c", "other:a", "other:x"}));
  EXPECT_EQ(names_of(client.result("queues.list",
                                   R"({"vhost":"other","after":{"vhost":"/","name":"z"}})")),
            (Names{"other:a", "other:x"}));
  EXPECT_EQ(names_of(client.result("queues.list",
                                   R"({"vhost":"/","after":{"vhost":"other","name":"a"}})")),
            Names{});
}

TEST(AdminRpc, AssemblesALongListInSlices) {
  AdminBroker broker;
  constexpr std::size_t kQueues = kSliceQueues * 3 + 7;
  Definitions definitions;
  for (std::size_t i = 0; i < kQueues; ++i) {
    QueueSpec spec;
    spec.vhost = "/";
    spec.name = "q" + std::to_string(1000 + i);
    definitions.queues.push_back(spec);
  }
  broker.import(std::move(definitions));
  Client client(broker);
  client.log_in("guest");
  const json::value page = client.result("queues.list");
  const std::vector<std::string> names = names_of(page);
  ASSERT_EQ(names.size(), kQueues);
  for (std::size_t i = 0; i < kQueues; ++i) ASSERT_EQ(names[i], "/:q" + std::to_string(1000 + i));
  EXPECT_TRUE(page.at("next").is_null());
}

TEST(AdminRpc, EndsAPageOfBigQueuesEarly) {
  AdminBroker broker;
  constexpr std::size_t kArgumentBytes = 100'000;
  constexpr std::size_t kQueues = kMaxPageBytes / kArgumentBytes + 10;
  for (std::size_t i = 0; i < kQueues; ++i) {
    broker.declare("/", "q" + std::to_string(100 + i),
                   {{"x-note", std::string(kArgumentBytes, 'n')}});
  }
  Client client(broker);
  client.log_in("guest");
  std::size_t seen = 0;
  std::string after;
  for (int pages = 0; pages < 5; ++pages) {
    const json::value page = client.result("queues.list", "{" + after + "}");
    seen += page.at("items").as_array().size();
    EXPECT_LT(page.at("items").as_array().size(), kQueues);
    if (page.at("next").is_null()) break;
    after = R"("after":)" + json::serialize(page.at("next"));
  }
  EXPECT_EQ(seen, kQueues);
}

TEST(AdminRpc, RefusesBadQueries) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  const struct {
    const char* params;
    const char* error;
  } cases[] = {
      {R"({"vhost":"nowhere"})", "404 no vhost 'nowhere'"},
      {R"({"vhost":5})", "-32602 Invalid params: queues.list: member 'vhost' must be a string"},
      {R"({"limit":0})",
       "-32602 Invalid params: queues.list: member 'limit' must be a whole number from 1 to 10000"},
      {R"({"limit":10001})",
       "-32602 Invalid params: queues.list: member 'limit' must be a whole number from 1 to 10000"},
      {R"({"limit":-1})",
       "-32602 Invalid params: queues.list: member 'limit' must be a whole number that is not "
       "negative"},
      {R"({"after":"a"})", "-32602 Invalid params: queues.list: after must be an object"},
      {R"({"after":{"name":"a"}})",
       "-32602 Invalid params: queues.list: after: member 'vhost' is missing"},
      {R"({"after":{"vhost":"/","name":"a","x":1}})",
       "-32602 Invalid params: queues.list: after: member 'x' is not known"},
  };
  for (const auto& c : cases) EXPECT_EQ(client.error("queues.list", c.params), c.error) << c.params;
}

TEST(AdminRpc, ShowsOnlyTheVhostsOfAManagementUser) {
  AdminBroker broker;
  broker.declare("/", "secret");
  broker.declare("other", "lemons");
  Client lena(broker);
  lena.log_in("lena");
  EXPECT_EQ(names_of(lena.result("queues.list")), std::vector<std::string>{"other:lemons"});
  EXPECT_EQ(lena.error("queues.list", R"({"vhost":"/"})"),
            "403 access to vhost '/' refused for user 'lena'");
  const json::value overview = lena.result("overview.get");
  EXPECT_EQ(overview.at("object_totals").at("vhosts").as_int64(), 1);
  EXPECT_EQ(overview.at("object_totals").at("queues").as_int64(), 1);
  EXPECT_FALSE(overview.as_object().contains("mem_used"));
  EXPECT_FALSE(overview.at("object_totals").as_object().contains("connections"));
}

TEST(AdminRpc, CountsInTheOverview) {
  AdminBroker broker;
  broker.declare("/", "orders");
  broker.declare("other", "lemons");
  Client client(broker);
  client.log_in("guest");
  const std::string publish = R"("exchange":"","payload":"x","routing_key":)";
  client.result("messages.publish", R"({"vhost":"/",)" + publish + R"("orders"})");
  client.result("messages.publish",
                R"({"vhost":"/","properties":{"delivery_mode":2},)" + publish + R"("orders"})");
  broker.take("/", "orders");
  const json::value overview = client.result("overview.get");
  EXPECT_EQ(overview.at("product_name").as_string(), "StoatMQ");
  const json::value& objects = overview.at("object_totals");
  EXPECT_EQ(objects.at("vhosts").as_int64(), 2);
  EXPECT_EQ(objects.at("queues").as_int64(), 2);
  EXPECT_EQ(objects.at("consumers").as_int64(), 0);
  EXPECT_EQ(objects.at("connections").as_int64(), 0);
  EXPECT_EQ(objects.at("channels").as_int64(), 0);
  EXPECT_GT(objects.at("exchanges").as_int64(), 2);
  EXPECT_EQ(json::serialize(overview.at("queue_totals")),
            R"({"messages":1,"messages_ready":1,"messages_unacknowledged":0})");
  EXPECT_EQ(json::serialize(overview.at("message_stats")),
            R"({"publish":2,"deliver_get":1,"ack":1})");
  EXPECT_GT(overview.at("mem_used").as_int64(), 0);
  EXPECT_GT(overview.at("mem_limit").as_int64(), 0);
  EXPECT_EQ(overview.at("alarm").as_string(), "");
  EXPECT_EQ(json::serialize(overview.at("store")), R"({"written":1,"elided":0})");
  EXPECT_EQ(json::serialize(overview.at("listeners")),
            R"([{"protocol":"amqp","ip_address":"127.0.0.1","port":5672}])");
}

// --- publish ---

TEST(AdminRpc, PublishesWithProperties) {
  AdminBroker broker;
  broker.declare("/", "orders");
  broker.bind("/", "amq.topic", "orders", "order.#");
  Client client(broker);
  client.log_in("guest");
  const json::value answer = client.result("messages.publish", R"({"vhost":"/",
      "exchange":"amq.topic","routing_key":"order.new","payload":"AAEC","payload_encoding":"base64",
      "properties":{"content_type":"application/x","delivery_mode":2,"priority":3,
      "timestamp":1700000000,"user_id":"guest","expiration":"60000","message_id":"m-1",
      "headers":{"count":3,"when":{"type":"timestamp","value":5},"BCC":["hidden"]}}})");
  EXPECT_EQ(json::serialize(answer), R"({"routed":true})");
  EXPECT_EQ(broker.publishes_announced(), 1u);
  const MessagePtr message = broker.take("/", "orders");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->exchange(), "amq.topic");
  EXPECT_EQ(message->routing_key(), "order.new");
  EXPECT_EQ(message->body(), std::string_view("\0\1\2", 3));
  EXPECT_TRUE(message->persistent());
  const wire::Properties properties = wire::PropertiesView(message->properties()).parse();
  EXPECT_EQ(properties.content_type, "application/x");
  EXPECT_EQ(properties.priority, 3);
  EXPECT_EQ(properties.timestamp, 1700000000u);
  EXPECT_EQ(properties.user_id, "guest");
  EXPECT_EQ(properties.expiration, "60000");
  EXPECT_EQ(properties.message_id, "m-1");
  ASSERT_TRUE(properties.headers);
  EXPECT_TRUE(wire::equivalent(
      *properties.headers, wire::Table{{"count", std::int64_t{3}}, {"when", wire::Timestamp{5}}}));
}

TEST(AdminRpc, PublishesToQueuesOfAllHomesOnce) {
  AdminBroker broker(3);
  Client client(broker);
  client.log_in("guest");
  for (int i = 0; i < 9; ++i) {
    broker.declare("/", "q" + std::to_string(i));
    broker.bind("/", "amq.fanout", "q" + std::to_string(i), "");
    broker.bind("/", "amq.fanout", "q" + std::to_string(i), "again");
  }
  const json::value answer =
      client.result("messages.publish",
                    R"({"vhost":"/","exchange":"amq.fanout","routing_key":"","payload":"all"})");
  EXPECT_TRUE(answer.at("routed").as_bool());
  for (int i = 0; i < 9; ++i) {
    const MessagePtr message = broker.take("/", "q" + std::to_string(i));
    ASSERT_TRUE(message) << i;
    EXPECT_EQ(message->body(), "all");
    EXPECT_FALSE(broker.take("/", "q" + std::to_string(i))) << i;
  }
}

TEST(AdminRpc, RoutesByCcHeadersAndDefaultExchange) {
  AdminBroker broker;
  broker.declare("/", "a");
  broker.declare("/", "b");
  broker.declare("/", "c");
  Client client(broker);
  client.log_in("guest");
  const json::value answer = client.result("messages.publish", R"({"vhost":"/",
      "exchange":"amq.default","routing_key":"a","payload":"x","payload_encoding":"string",
      "properties":{"headers":{"CC":["b"],"BCC":["c"]}}})");
  EXPECT_TRUE(answer.at("routed").as_bool());
  for (const char* queue : {"a", "b", "c"}) EXPECT_TRUE(broker.take("/", queue)) << queue;
}

TEST(AdminRpc, SaysWhenNothingTookAMessage) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  for (const char* target : {R"("exchange":"","routing_key":"nowhere")",
                             R"("exchange":"amq.direct","routing_key":"nowhere")",
                             R"("exchange":"","routing_key":"amq.rabbitmq.reply-to.nonsense")"}) {
    const json::value answer = client.result(
        "messages.publish", std::string(R"({"vhost":"/","payload":"x",)") + target + "}");
    EXPECT_EQ(json::serialize(answer), R"({"routed":false})") << target;
  }
}

TEST(AdminRpc, RefusesBadPublishes) {
  AdminBroker broker;
  broker.declare("/", "q");
  Client client(broker);
  client.log_in("guest");
  const std::string long_name(256, 'x');
  const struct {
    std::string params;  // beside vhost
    std::string error;
  } cases[] = {
      {R"("vhost":"nowhere","exchange":"","routing_key":"q","payload":"")",
       "404 no vhost 'nowhere'"},
      {R"("vhost":"/","exchange":"none","routing_key":"q","payload":"")",
       "404 no exchange 'none' in vhost '/'"},
      {R"("vhost":"/","exchange":"","routing_key":"q")",
       "-32602 Invalid params: messages.publish: member 'payload' is missing"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"*","payload_encoding":"base64")",
       "-32602 Invalid params: messages.publish: member 'payload' is no base64"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","payload_encoding":"hex")",
       "-32602 Invalid params: messages.publish: member 'payload_encoding' must be string or "
       "base64"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","properties":{"prio":1})",
       "-32602 Invalid params: messages.publish: properties: member 'prio' is not known"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","properties":{"priority":256})",
       "-32602 Invalid params: messages.publish: properties: member 'priority' must be a whole "
       "number from 0 to 255"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","properties":{"type":")" +
           long_name + R"("})",
       "-32602 Invalid params: messages.publish: properties: member 'type' is longer than 255 "
       "bytes"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","properties":{"headers":[]})",
       "-32602 Invalid params: messages.publish: properties: headers must be an object"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"",
          "properties":{"expiration":"soon"})",
       "406 invalid expiration 'soon': expected milliseconds as digits, at most ten years"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"",
          "properties":{"user_id":"other"})",
       "406 user_id property set to 'other' but authenticated user was 'guest'"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"",
          "properties":{"headers":{"CC":"q"}})",
       "406 unexpected type of header 'CC': expected an array of long strings"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"",
          "properties":{"reply_to":"amq.rabbitmq.reply-to"})",
       "406 fast reply consumer does not exist"},
      {R"("vhost":"/","exchange":"","payload":"","routing_key":")" + long_name + R"(")",
       "406 the routing key is too long"},
      {R"("vhost":"/","exchange":")" + long_name + R"(","payload":"","routing_key":"q")",
       "406 the exchange's name is too long"},
      {R"("vhost":"/","exchange":"","routing_key":"q","payload":"","properties":{"headers":{"a":")" +
           std::string(131072, 'x') + R"("}})",
       "406 the message's properties do not fit a frame"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(client.error("messages.publish", "{" + c.params + "}"), c.error);
  }
  EXPECT_FALSE(broker.take("/", "q"));
}

TEST(AdminRpc, ChecksPermissionsToPublish) {
  AdminBroker broker;
  broker.declare("other", "lemons");
  Definitions definitions;
  definitions.exchanges = {{"other", "limes", "fanout", true, false, false, {}},
                           {"other", "lychees", "fanout", true, false, true, {}}};
  definitions.bindings = {{"other", "limes", DestinationKind::queue, "lemons", "", {}}};
  broker.import(std::move(definitions));
  Client lena(broker);
  lena.log_in("lena");
  const auto to = [](const char* vhost, const char* exchange) {
    return std::string(R"({"routing_key":"lemons","payload":"","vhost":")") + vhost +
           R"(","exchange":")" + exchange + R"("})";
  };
  EXPECT_TRUE(lena.result("messages.publish", to("other", "limes")).at("routed").as_bool());
  EXPECT_EQ(lena.error("messages.publish", to("other", "")),
            "403 access to exchange 'amq.default' in vhost 'other' refused for user 'lena'");
  EXPECT_EQ(lena.error("messages.publish", to("/", "amq.topic")),
            "403 access to exchange 'amq.topic' in vhost '/' refused for user 'lena'");
  EXPECT_EQ(lena.error("messages.publish", to("other", "lychees")),
            "403 cannot publish to internal exchange 'lychees' in vhost 'other'");
  // To see everything is not to be allowed to write.
  Client ops(broker);
  ops.log_in("ops");
  EXPECT_EQ(ops.error("messages.publish", to("other", "limes")),
            "403 access to exchange 'limes' in vhost 'other' refused for user 'ops'");
}

TEST(AdminRpc, HoldsPublishersBackDuringAnAlarm) {
  AdminBroker broker;
  broker.declare("/", "q");
  Client client(broker);
  client.log_in("guest");
  const char* publish = R"({"vhost":"/","exchange":"","routing_key":"q","payload":""})";
  broker.set_alarm("low on disk");
  EXPECT_EQ(client.error("messages.publish", publish), "503 publishers are held back: low on disk");
  EXPECT_EQ(client.result("overview.get").at("alarm").as_string(), "low on disk");
  broker.set_alarm("");
  EXPECT_TRUE(client.result("messages.publish", publish).at("routed").as_bool());
}

TEST(AdminRpc, RefusesPublishesOnceStopped) {
  AdminBroker broker;
  broker.declare("/", "q");
  Client client(broker);
  client.log_in("guest");
  broker.operations().stop();
  EXPECT_EQ(client.error("messages.publish",
                         R"({"vhost":"/","exchange":"","routing_key":"q","payload":""})"),
            "503 the broker is stopping");
}

// --- subscriptions ---

TEST(AdminRpc, NotifiesSubscribers) {
  AdminBroker broker;
  broker.declare("/", "q");
  Client client(broker);
  client.log_in("guest");
  const SteadyTime start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.session().notification_due(), SteadyTime::max());
  const json::value answer = client.result("subscribe", R"({"topic":"stats","interval_ms":1000})");
  EXPECT_EQ(json::serialize(answer), R"({"subscription":1})");
  EXPECT_LE(client.session().notification_due(), start);

  const json::value first = json::parse(client.notification(start));
  EXPECT_FALSE(first.as_object().contains("id"));
  EXPECT_EQ(first.at("jsonrpc").as_string(), "2.0");
  EXPECT_EQ(first.at("method").as_string(), "stats");
  EXPECT_EQ(first.at("params").at("subscription").as_int64(), 1);
  EXPECT_EQ(first.at("params").at("topic").as_string(), "stats");
  EXPECT_EQ(first.at("params").at("missed").as_int64(), 0);
  EXPECT_EQ(first.at("params").at("stats").at("object_totals").at("queues").as_int64(), 1);

  EXPECT_EQ(client.session().notification_due(), start + std::chrono::seconds(1));
  EXPECT_EQ(client.notification(start + std::chrono::milliseconds(999)), "");
  // Whoever could not be told in time is told how often.
  const json::value late =
      json::parse(client.notification(start + std::chrono::milliseconds(4500)));
  EXPECT_EQ(late.at("params").at("missed").as_int64(), 3);
  EXPECT_EQ(client.session().notification_due(), start + std::chrono::seconds(5));

  client.result("unsubscribe", R"({"subscription":1})");
  EXPECT_EQ(client.session().notification_due(), SteadyTime::max());
  EXPECT_EQ(client.notification(start + std::chrono::hours(1)), "");
  EXPECT_EQ(client.error("unsubscribe", R"({"subscription":1})"), "404 no subscription 1");
}

TEST(AdminRpc, TakesTurnsBetweenSubscriptions) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  client.result("subscribe", R"({"topic":"stats","interval_ms":100})");
  client.result("subscribe", R"({"topic":"stats"})");
  const SteadyTime now = std::chrono::steady_clock::now();
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 3; ++i) {
    const std::string text = client.notification(now);
    if (text.empty()) break;
    ids.push_back(json::parse(text).at("params").at("subscription").as_int64());
  }
  EXPECT_EQ(ids, (std::vector<std::int64_t>{1, 2}));
}

TEST(AdminRpc, LimitsSubscriptions) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("guest");
  EXPECT_EQ(client.error("subscribe", R"({"topic":"weather"})"),
            "-32602 Invalid params: subscribe: member 'topic' must be stats");
  EXPECT_EQ(client.error("subscribe", R"({"topic":"stats","interval_ms":99})"),
            "-32602 Invalid params: subscribe: member 'interval_ms' must be a whole number from "
            "100 to 3600000");
  for (std::size_t i = 0; i < kMaxSubscriptions; ++i) {
    client.result("subscribe", R"({"topic":"stats"})");
  }
  EXPECT_EQ(client.error("subscribe", R"({"topic":"stats"})"),
            "406 a session has at most 16 subscriptions");
}

TEST(AdminRpc, EndsASubscriptionThatIsNotAllowedAnyMore) {
  AdminBroker broker;
  Client client(broker);
  client.log_in("lena");
  client.result("subscribe", R"({"topic":"stats"})");
  Definitions definitions;
  definitions.users = {{"lena", "", std::string("rabbit_password_hashing_sha256"), {}}};
  broker.import(std::move(definitions));
  const json::value last = json::parse(client.notification(std::chrono::steady_clock::now()));
  EXPECT_EQ(last.at("params").at("error").at("code").as_int64(), 403) << last;
  EXPECT_EQ(client.session().notification_due(), SteadyTime::max());
}

}  // namespace
}  // namespace stoat::broker::admin
