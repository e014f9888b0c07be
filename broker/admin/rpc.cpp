#include "broker/admin/rpc.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "broker/admin/json_forms.hpp"
#include "broker/log.hpp"

namespace stoat::broker::admin {

namespace json = boost::json;

namespace {

// Error codes of the JSON-RPC 2.0 specification, section 5.1. Refusals have their own, below 1000.
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParameters = -32602;
constexpr int kInternalError = -32603;

struct RpcError {
  int code;
  std::string message;
};

json::object error_object(const RpcError& error) {
  return {{"code", error.code}, {"message", error.message}};
}

std::string error_answer(const json::value& id, const RpcError& error) {
  return json::serialize(
      json::object{{"jsonrpc", "2.0"}, {"error", error_object(error)}, {"id", id}});
}

std::string result_answer(const json::value& id, json::value result) {
  return json::serialize(
      json::object{{"jsonrpc", "2.0"}, {"result", std::move(result)}, {"id", id}});
}

bool is_id(const json::value& id) {
  return id.is_string() || id.is_number() || id.is_null();
}

// What a request is missing to be one; empty when nothing.
std::string mistake_in(const json::value& request) {
  const json::object* object = request.if_object();
  if (object == nullptr) return "a request is an object";
  const json::value* version = object->if_contains("jsonrpc");
  if (version == nullptr || *version != "2.0") return "member 'jsonrpc' must be \"2.0\"";
  const json::value* id = object->if_contains("id");
  if (id != nullptr && !is_id(*id)) return "member 'id' must be a string, a number or null";
  const json::value* method = object->if_contains("method");
  if (method == nullptr || !method->is_string()) return "member 'method' must be a string";
  const json::value* params = object->if_contains("params");
  if (params != nullptr && !params->is_structured()) {
    return "member 'params' must be an object or an array";
  }
  return {};
}

// The request's id where it has a good one.
json::value id_of(const json::value& request) {
  const json::object* object = request.if_object();
  const json::value* id = object == nullptr ? nullptr : object->if_contains("id");
  return id != nullptr && is_id(*id) ? *id : json::value(nullptr);
}

}  // namespace

RpcSession::RpcSession(Operations& operations, bool peer_is_loopback, std::optional<Caller> caller)
    : context_{operations, subscriptions_, peer_is_loopback, std::move(caller)} {}

std::size_t RpcSession::max_message_bytes() const {
  return context_.caller ? kMaxMessageBytes : kMaxLoginMessageBytes;
}

asio::awaitable<std::string> RpcSession::answer(std::string text) {
  json::value request;
  std::string mistake;
  try {
    request = parse_json(text);
  } catch (const JsonMistake& error) {
    mistake = error.what();
  }
  if (!mistake.empty()) {
    co_return error_answer(nullptr, {kParseError, "Parse error: " + mistake});
  }
  text = {};
  std::string answer;
  if (const json::array* batch = request.if_array()) {
    answer = co_await answer_batch(*batch);
  } else {
    answer = co_await answer_one(request);
  }
  subscriptions_.start_new();
  co_return answer;
}

asio::awaitable<std::string> RpcSession::answer_batch(const json::array& requests) {
  if (requests.empty() || requests.size() > kMaxBatchRequests) {
    co_return error_answer(nullptr,
                           {kInvalidRequest, "Invalid Request: a batch is of 1 to " +
                                                 std::to_string(kMaxBatchRequests) + " requests"});
  }
  std::string answers;
  for (const json::value& request : requests) {
    std::string answer;
    if (answers.size() > kMaxBatchAnswerBytes) {
      answer = error_answer(id_of(request), {static_cast<int>(RefusalCode::unavailable),
                                             "not run: the answers of the batch are too long"});
    } else {
      answer = co_await answer_one(request);
    }
    if (answer.empty()) continue;
    answers += answers.empty() ? '[' : ',';
    answers += answer;
  }
  if (!answers.empty()) answers += ']';
  co_return answers;
}

asio::awaitable<std::string> RpcSession::answer_one(const json::value& request) {
  if (const std::string mistake = mistake_in(request); !mistake.empty()) {
    co_return error_answer(id_of(request), {kInvalidRequest, "Invalid Request: " + mistake});
  }
  const json::object& object = request.get_object();
  const std::string_view method(object.at("method").get_string());
  const bool wants_answer = object.contains("id");
  RpcError error{0, ""};
  try {
    json::value result = co_await run(method, object.if_contains("params"));
    if (!wants_answer) co_return std::string();
    co_return result_answer(id_of(request), std::move(result));
  } catch (const RpcError& failure) {
    error = failure;
  } catch (const JsonMistake& mistake) {
    error = {kInvalidParameters, "Invalid params: " + std::string(mistake.what())};
  } catch (const Refusal& refusal) {
    error = {static_cast<int>(refusal.code), refusal.text};
  } catch (const std::exception& failure) {
    log::error("admin method " + std::string(method) + ": " + failure.what());
    error = {kInternalError, "Internal error"};
  }
  if (!wants_answer) co_return std::string();
  co_return error_answer(id_of(request), error);
}

asio::awaitable<json::value> RpcSession::run(std::string_view name, const json::value* parameters) {
  const Method* method = find_method(name);
  if (!context_.caller && (method == nullptr || !method->before_login)) {
    throw Refusal(RefusalCode::not_logged_in, "log in first");
  }
  if (method == nullptr) {
    throw RpcError{kMethodNotFound, "Method not found: '" + std::string(name) + "'"};
  }
  static const json::value kNone = json::object();
  if (parameters == nullptr) parameters = &kNone;
  // By position no method could grow.
  if (parameters->is_array()) {
    if (!parameters->get_array().empty()) throw JsonMistake("parameters are given by name");
    parameters = &kNone;
  }
  check_members(parameters->get_object(), method->parameters, std::string(name));
  const JsonFields fields(*parameters, std::string(name));
  co_return co_await method->run(context_, fields);
}

asio::awaitable<std::string> RpcSession::notification(SteadyTime now) {
  const auto due = subscriptions_.next(now);
  if (!due) co_return std::string();
  json::object content;
  RpcError error{0, ""};
  try {
    content = co_await notification_of(context_, due->topic);
  } catch (const Refusal& refusal) {
    error = {static_cast<int>(refusal.code), refusal.text};
  } catch (const std::exception& failure) {
    log::error("admin topic " + std::string(name_of(due->topic)) + ": " + failure.what());
    error = {kInternalError, "Internal error"};
  }
  if (!subscriptions_.contains(due->id)) co_return std::string();  // unsubscribed meanwhile
  if (error.code != 0) {
    subscriptions_.remove(due->id);
    content["error"] = error_object(error);
  }
  content["subscription"] = due->id;
  content["topic"] = json::string(name_of(due->topic));
  content["missed"] = due->missed;
  co_return json::serialize(json::object{{"jsonrpc", "2.0"},
                                         {"method", json::string(name_of(due->topic))},
                                         {"params", std::move(content)}});
}

}  // namespace stoat::broker::admin
