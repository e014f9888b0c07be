#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "wire/field_value.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {

// What both sides agreed on in connection.tune.
struct Tuning {
  std::uint16_t channel_max = 0;
  std::uint32_t frame_max_bytes = 0;
  std::uint16_t heartbeat_s = 0;  // 0: none
};

// Who is connected, as its start-ok says.
struct ClientInfo {
  std::string user;
  std::string vhost;
  std::string mechanism;
  std::string connection_name;
  std::string product;
  wire::Table properties;
  bool cancel_notify = false;
  bool blocked_notify = false;
  bool authentication_failure_close = false;
};

// Wrong credentials, or guest from afar. `tell`: the client asked to be told by connection.close;
// otherwise the socket is closed after a delay, as brokers did before that capability.
struct LoginRefused : std::exception {
  LoginRefused(std::string t, std::string why, bool tell_client)
      : text(std::move(t)), reason(std::move(why)), tell(tell_client) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;    // the reply text
  std::string reason;  // for the log only
  bool tell;
};

// Answers the handshake's questions about users and vhosts.
class LoginDirectory {
 public:
  virtual ~LoginDirectory() = default;
  virtual bool password_matches(std::string_view user, std::string_view password) const = 0;
  virtual bool vhost_exists(std::string_view vhost) const = 0;
  virtual bool may_use_vhost(std::string_view user, std::string_view vhost) const = 0;
};

// What the first bytes of a connection are.
enum class Greeting { incomplete, amqp_0_9_1, amqp_other, http, tls, unknown };
Greeting recognise_greeting(std::string_view first_bytes);

// The opening of a connection: start, start-ok, tune, tune-ok, open (specification 2.2.4), as a
// state machine fed with method payloads; its answers are appended to a byte string.
// Owner: Connection. Thread: the connection's worker. No socket, no clock.
class Handshake {
 public:
  // `directory` must outlive it.
  Handshake(const LoginDirectory& directory, Tuning offered, bool peer_is_loopback,
            std::string cluster_name);

  // After the protocol header: appends connection.start.
  void start(std::string& out);
  // A method on channel 0. Throws wire::ConnectionError and LoginRefused.
  void on_method(std::string_view payload, std::string& out);

  bool done() const { return state_ == State::done; }
  // Past the login: a failure may be answered by connection.close.
  bool authenticated() const { return state_ > State::start_ok; }
  const Tuning& tuning() const { return tuning_; }
  const ClientInfo& client() const { return client_; }

 private:
  enum class State { start_ok, tune_ok, open, done };

  void on_start_ok(std::string_view payload, std::string& out);
  void on_tune_ok(std::string_view payload);
  void on_open(std::string_view payload, std::string& out);
  void authenticate(std::string_view mechanism, std::string_view response);

  const LoginDirectory& directory_;
  const Tuning offered_;
  const bool peer_is_loopback_;
  const std::string cluster_name_;
  State state_ = State::start_ok;
  Tuning tuning_;
  ClientInfo client_;
};

// Users that may log in from the loopback interface only.
inline constexpr std::string_view kLoopbackOnlyUser = "guest";

}  // namespace stoat::broker
