#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wire/properties.hpp"

namespace stoat::client {

using Properties = wire::Properties;

inline constexpr std::uint8_t kTransient = 1;
inline constexpr std::uint8_t kPersistent = 2;

// What is published: a body of any bytes with its properties.
struct Message {
  Message(std::string message_body) : body(std::move(message_body)) {}  // NOLINT: reads as a body
  Message(std::string message_body, Properties message_properties)
      : body(std::move(message_body)), properties(std::move(message_properties)) {}
  // delivery_mode 2: kept on disk by a durable queue.
  static Message persistent(std::string message_body);

  std::string body;
  Properties properties;
};

// What became of a publish. Every publish has exactly one of these.
enum class PublishStatus {
  acked,     // the broker has taken responsibility for it
  nacked,    // the broker refused it, as a full queue with overflow reject-publish does
  returned,  // mandatory, and no queue was bound for it; code and text say so
  lost,      // no answer before the channel ended or the time limit passed: may or may not be there
};
std::string_view to_string(PublishStatus status);

struct PublishResult {
  PublishStatus status = PublishStatus::lost;
  std::uint16_t code = 0;  // for returned and lost, the broker's where it gave one
  std::string text;

  bool acked() const { return status == PublishStatus::acked; }
};

// A message as it came from a queue, with what is needed to settle it.
struct Delivery {
  std::string exchange;
  std::string routing_key;
  std::string body;
  // The properties as they came, checked; see properties().
  std::string raw_properties;
  bool redelivered = false;
  // From Channel::get only: how many messages were left in the queue.
  std::optional<std::uint32_t> message_count;

  std::uint64_t delivery_tag = 0;
  // The opening of a channel it came on: it can be settled nowhere else.
  std::uint32_t channel_incarnation = 0;

  // Parsed at each call.
  Properties properties() const { return wire::PropertiesView(raw_properties).parse(); }
};

struct QueueInfo {
  std::string name;  // the broker's choice when it was declared with an empty name
  std::uint32_t message_count = 0;
  std::uint32_t consumer_count = 0;
};

}  // namespace stoat::client
