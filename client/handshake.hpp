#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stoat/client/error.hpp"
#include "stoat/client/options.hpp"
#include "stoat/client/uri.hpp"
#include "wire/connection.hpp"

// The decisions of the login, without its order: that is ConnectionMachine's.

namespace stoat::client {

// What is told to the broker about this client: product, version, platform, connection name,
// capabilities; keys of options.client_properties come on top.
Table client_properties(const ConnectionOptions& options);

// SASL PLAIN's only message.
std::string plain_response(const Uri& uri);

// nullopt when this client can log in to such a broker.
std::optional<Error> check_start(const wire::connection::Start& start);

// The lower of both proposals, 0 standing for none; the answer is within what the broker offered.
// An error: its frame_max is below the protocol's minimum.
struct Tuned {
  std::uint16_t channel_max = 0;  // never 0
  std::uint32_t frame_max_bytes = 0;
  std::uint16_t heartbeat_seconds = 0;
  std::optional<Error> error;
};
Tuned negotiate(const wire::connection::Tune& offered, const ConnectionOptions& options);

}  // namespace stoat::client
