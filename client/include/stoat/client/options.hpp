#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "wire/field_value.hpp"

// What can be chosen. The structs for channel methods hold flags and numbers only, so that
// {.durable = true} can stand right in a co_await expression: g++ 12 destroys an aggregate with
// strings twice there. Strings and tables are parameters of their own for the same reason.

namespace stoat::client {

using Table = wire::Table;
using FieldValue = wire::FieldValue;

struct ConnectionOptions {
  explicit ConnectionOptions(std::string connection_name = {}) : name(std::move(connection_name)) {}

  // Shown in the broker's list of connections.
  std::string name;
  // Added to the client properties that are sent at login; a key of ours is replaced.
  Table client_properties;

  // Name resolution, TCP and login together.
  std::chrono::milliseconds connect_timeout{10'000};
  // Every method that waits for an answer of the broker.
  std::chrono::milliseconds rpc_timeout{10'000};
  // Default for a publish: waiting for room and for the confirm together.
  std::chrono::milliseconds publish_timeout{30'000};

  // Proposals for the negotiation; the broker may lower them. A heartbeat of 0 asks for none.
  std::chrono::seconds heartbeat{60};
  std::uint32_t frame_max_bytes = 131'072;
  std::uint16_t channel_max = 2047;

  // A publish waits while its channel has this many publishes without a confirm…
  std::size_t max_unconfirmed = 1000;
  // …or while this much is encoded and not yet taken by the socket.
  std::size_t max_unsent_bytes = 1 << 20;
  // The socket is not read further while deliveries of this size wait to be taken by the program.
  std::size_t max_buffered_bytes = 64 << 20;
  // A larger message closes the channel with 311.
  std::size_t max_message_bytes = 128 << 20;
};

struct ExchangeOptions {
  bool durable = false;
  bool auto_delete = false;  // deleted when its last binding goes
  bool internal = false;     // not for publishing, only as a destination of other exchanges
  bool passive = false;      // only ask whether it is there; 404 when not
};
struct DeleteExchangeOptions {
  bool if_unused = false;
};

struct QueueOptions {
  bool durable = false;
  bool exclusive = false;    // only for this connection, and gone with it
  bool auto_delete = false;  // deleted when its last consumer goes
  bool passive = false;      // only ask whether it is there; 404 when not
};
struct DeleteQueueOptions {
  bool if_unused = false;
  bool if_empty = false;
};

struct PublishOptions {
  // Unroutable: comes back as PublishStatus::returned instead of being dropped as acked.
  bool mandatory = false;
  // Instead of ConnectionOptions::publish_timeout.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

struct ConsumeOptions {
  bool no_ack = false;  // settled as soon as it is sent
  bool exclusive = false;
};
struct GetOptions {
  bool no_ack = false;
};

struct AckOptions {
  bool multiple = false;  // this one and all before it on the channel
};
struct NackOptions {
  bool multiple = false;
  bool requeue = true;  // false: dead-lettered or dropped
};

}  // namespace stoat::client
