#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stoat::client {

// What a program can tell failures apart by.
enum class ErrorKind {
  invalid_argument,    // refused here, before anything was sent: a name too long, a bad URI…
  limit_reached,       // a named limit of this client or of the negotiation (channel_max…)
  network,             // could not be reached, or the TCP connection was lost
  access_refused,      // the login or the vhost was refused
  connection_closed,   // the broker closed the connection; see reply_code()
  channel_closed,      // the broker closed the channel; see reply_code()
  consumer_cancelled,  // the broker cancelled the consumer, as when its queue is deleted
  closed,              // used after this program closed it
  timeout,             // no answer within the time limit
  protocol_violation,  // the peer does not speak AMQP 0-9-1 as it should
};

std::string_view to_string(ErrorKind kind);

// Every failure of this library. what() is a sentence for a person; reply_code() and reply_text()
// are the broker's own words where it closed something, else 0 and empty:
//
//   try {
//     co_await channel.declare_queue("orders", {.passive = true});
//   } catch (const Error& e) {
//     if (e.reply_code() == 404) …  // and the channel is closed, as AMQP has it
//   }
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  // The broker's reason; what is "<context>: <code> <text>".
  Error(ErrorKind kind, std::string_view context, std::uint16_t reply_code,
        std::string_view reply_text);

  ErrorKind kind() const { return kind_; }
  std::uint16_t reply_code() const { return reply_code_; }
  const std::string& reply_text() const { return reply_text_; }

 private:
  ErrorKind kind_;
  std::uint16_t reply_code_ = 0;
  std::string reply_text_;
};

}  // namespace stoat::client
