#include "broker/handshake.hpp"

#include <optional>

#include "broker/decode.hpp"
#include "broker/version.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"
#include "wire/utf8.hpp"

namespace stoat::broker {

namespace {

using wire::ConnectionErrorCode;
namespace connection = wire::connection;

constexpr ChannelNumber kChannelZero{0};

struct Credentials {
  std::string user;
  std::string password;
};

// RFC 4616: authorisation id, user, password, separated by NUL.
std::optional<Credentials> parse_plain(std::string_view response) {
  const auto first = response.find('\0');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = response.find('\0', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Credentials{std::string(response.substr(first + 1, second - first - 1)),
                     std::string(response.substr(second + 1))};
}

// A field table's entries, without its length: LOGIN and PASSWORD.
std::optional<Credentials> parse_amqplain(std::string_view response) {
  std::string table;
  wire::Writer(table).long_string(response);
  wire::Reader reader(table);
  const wire::Table fields = reader.table();
  if (!reader.ok()) return std::nullopt;
  const auto* login = fields.find("LOGIN");
  const auto* password = fields.find("PASSWORD");
  if (login == nullptr || password == nullptr) return std::nullopt;
  if (login->as_string() == nullptr || password->as_string() == nullptr) return std::nullopt;
  return Credentials{*login->as_string(), *password->as_string()};
}

bool capability(const wire::Table& properties, std::string_view name) {
  const auto* capabilities = properties.find("capabilities");
  if (capabilities == nullptr || capabilities->as_table() == nullptr) return false;
  const auto* value = capabilities->as_table()->find(name);
  return value != nullptr && value->as_bool() != nullptr && *value->as_bool();
}

std::string text_property(const wire::Table& properties, std::string_view name) {
  const auto* value = properties.find(name);
  return value != nullptr && value->as_string() != nullptr ? *value->as_string() : std::string();
}

wire::Table server_properties(const std::string& cluster_name) {
  wire::Table capabilities;
  for (const char* name : {"publisher_confirms", "exchange_exchange_bindings", "basic.nack",
                           "consumer_cancel_notify", "connection.blocked", "consumer_priorities",
                           "authentication_failure_close", "per_consumer_qos", "direct_reply_to"}) {
    capabilities.set(name, true);
  }
  return wire::Table{{"capabilities", std::move(capabilities)},
                     {"cluster_name", cluster_name},
                     {"copyright", "Copyright the StoatMQ authors"},
                     {"information", "Licensed under the Apache License 2.0"},
                     {"platform", "C++20"},
                     {"product", "StoatMQ"},
                     {"version", std::string(version())}};
}

}  // namespace

Greeting recognise_greeting(std::string_view bytes) {
  if (bytes.empty()) return Greeting::incomplete;
  const std::string_view ours = wire::kProtocolHeader;
  const auto starts_like = [&](std::string_view known) {
    const auto n = std::min(bytes.size(), known.size());
    return bytes.substr(0, n) == known.substr(0, n);
  };
  if (starts_like("AMQP")) {
    if (bytes.size() < ours.size()) return Greeting::incomplete;
    return bytes.substr(0, ours.size()) == ours ? Greeting::amqp_0_9_1 : Greeting::amqp_other;
  }
  for (std::string_view verb : {"GET ", "POST ", "PUT ", "HEAD ", "DELETE ", "OPTIONS "}) {
    if (!starts_like(verb)) continue;
    return bytes.size() < verb.size() ? Greeting::incomplete : Greeting::http;
  }
  // A TLS record: handshake (22), version 3.x.
  if (bytes[0] == '\x16') {
    if (bytes.size() < 2) return Greeting::incomplete;
    return bytes[1] == '\x03' ? Greeting::tls : Greeting::unknown;
  }
  return Greeting::unknown;
}

Handshake::Handshake(const LoginDirectory& directory, Tuning offered, bool peer_is_loopback,
                     std::string cluster_name)
    : directory_(directory),
      offered_(offered),
      peer_is_loopback_(peer_is_loopback),
      cluster_name_(std::move(cluster_name)) {}

void Handshake::start(std::string& out) {
  connection::Start start;
  start.server_properties = server_properties(cluster_name_);
  start.mechanisms = "PLAIN AMQPLAIN";
  start.locales = "en_US";
  wire::append_method(out, kChannelZero, start);
}

void Handshake::on_method(std::string_view payload, std::string& out) {
  const auto id = wire::peek_method_id(payload);
  if (!id) throw wire::ConnectionError(ConnectionErrorCode::frame_error, "method frame too short");
  if (state_ == State::start_ok && *id == connection::StartOk::kId)
    return on_start_ok(payload, out);
  if (state_ == State::tune_ok && *id == connection::TuneOk::kId) return on_tune_ok(payload);
  if (state_ == State::open && *id == connection::Open::kId) return on_open(payload, out);
  throw wire::ConnectionError(ConnectionErrorCode::channel_error,
                              "method out of order while the connection is being opened", *id);
}

void Handshake::on_start_ok(std::string_view payload, std::string& out) {
  const auto ok = decode_or_throw<connection::StartOk>(payload);
  client_.properties = ok.client_properties;
  client_.mechanism = ok.mechanism.str();
  client_.connection_name = text_property(client_.properties, "connection_name");
  client_.product = text_property(client_.properties, "product");
  client_.cancel_notify = capability(client_.properties, "consumer_cancel_notify");
  client_.blocked_notify = capability(client_.properties, "connection.blocked");
  client_.authentication_failure_close =
      capability(client_.properties, "authentication_failure_close");
  authenticate(ok.mechanism, ok.response);
  state_ = State::tune_ok;
  wire::append_method(
      out, kChannelZero,
      connection::Tune{offered_.channel_max, offered_.frame_max_bytes, offered_.heartbeat_s});
}

void Handshake::authenticate(std::string_view mechanism, std::string_view response) {
  std::optional<Credentials> credentials;
  if (mechanism == "PLAIN") {
    credentials = parse_plain(response);
  } else if (mechanism == "AMQPLAIN") {
    credentials = parse_amqplain(response);
  } else {
    throw wire::ConnectionError(ConnectionErrorCode::command_invalid,
                                "unknown authentication mechanism '" + std::string(mechanism) + "'",
                                connection::StartOk::kId);
  }
  if (!credentials || !wire::valid_utf8(credentials->user)) {
    throw wire::ConnectionError(ConnectionErrorCode::syntax_error,
                                std::string(mechanism) + " response is malformed",
                                connection::StartOk::kId);
  }
  client_.user = credentials->user;
  const auto refuse = [&](std::string why) {
    throw LoginRefused(
        wire::reply_text(wire::ConnectionErrorCode::access_refused,
                         "Login was refused using authentication mechanism " +
                             std::string(mechanism) + ". For details see the broker logfile."),
        std::move(why), client_.authentication_failure_close);
  };
  if (!directory_.password_matches(client_.user, credentials->password)) {
    refuse("wrong user name or password");
  }
  if (client_.user == kLoopbackOnlyUser && !peer_is_loopback_) {
    refuse("this user may only log in from the loopback interface");
  }
}

void Handshake::on_tune_ok(std::string_view payload) {
  const auto ok = decode_or_throw<connection::TuneOk>(payload);
  const auto refuse = [](const std::string& why) {
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed, why, connection::TuneOk::kId);
  };
  // 0 means "no limit of mine"; ours stands then.
  tuning_.frame_max_bytes = ok.frame_max == 0 ? offered_.frame_max_bytes : ok.frame_max;
  tuning_.channel_max = ok.channel_max == 0 ? offered_.channel_max : ok.channel_max;
  tuning_.heartbeat_s = ok.heartbeat;
  if (tuning_.frame_max_bytes > offered_.frame_max_bytes) {
    refuse("negotiated frame_max = " + std::to_string(tuning_.frame_max_bytes) +
           " is higher than the maximum allowed value (" +
           std::to_string(offered_.frame_max_bytes) + ")");
  }
  if (tuning_.frame_max_bytes < wire::kMinFrameMaxBytes) {
    refuse("negotiated frame_max = " + std::to_string(tuning_.frame_max_bytes) +
           " is lower than the minimum allowed value (" + std::to_string(wire::kMinFrameMaxBytes) +
           ")");
  }
  if (tuning_.channel_max > offered_.channel_max) {
    refuse("negotiated channel_max = " + std::to_string(tuning_.channel_max) +
           " is higher than the maximum allowed value (" + std::to_string(offered_.channel_max) +
           ")");
  }
  state_ = State::open;
}

void Handshake::on_open(std::string_view payload, std::string& out) {
  const auto open = decode_or_throw<connection::Open>(payload);
  client_.vhost = open.virtual_host.str();
  if (!directory_.vhost_exists(client_.vhost)) {
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed,
                                "vhost " + client_.vhost + " not found", connection::Open::kId);
  }
  if (!directory_.may_use_vhost(client_.user, client_.vhost)) {
    throw wire::ConnectionError(
        ConnectionErrorCode::not_allowed,
        "access to vhost '" + client_.vhost + "' refused for user '" + client_.user + "'",
        connection::Open::kId);
  }
  state_ = State::done;
  wire::append_method(out, kChannelZero, connection::OpenOk{});
}

}  // namespace stoat::broker
