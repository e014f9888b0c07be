#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "stoat/client/error.hpp"
#include "stoat/client/options.hpp"
#include "wire/frame.hpp"

namespace stoat::client {

// What a connection's machine and its channels' machines share: the time of the call in progress,
// the bytes to be written, and the sums that limits are held against.
//
// Owner: one ConnectionMachine. Thread: its owner's.
struct MachineContext {
  explicit MachineContext(ConnectionOptions chosen)
      : options(std::move(chosen)),
        frame_max_bytes(std::max(options.frame_max_bytes, wire::kMinFrameMaxBytes)) {}

  const ConnectionOptions options;
  SteadyTime now;                                // handed in with every call
  SteadyTime next_deadline = SteadyTime::max();  // nothing is due before it; may be too early
  std::uint32_t frame_max_bytes;                 // as negotiated
  std::string output;                            // encoded, not yet taken for writing
  std::size_t writing_bytes = 0;                 // taken, not yet written
  std::size_t buffered_bytes = 0;                // deliveries not yet taken by the program
  std::optional<std::string> blocked_reason;     // between connection.blocked and unblocked

  bool room_to_send() const { return output.size() + writing_bytes < options.max_unsent_bytes; }

  SteadyTime deadline_after(std::chrono::milliseconds timeout) {
    constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);
    const SteadyTime deadline = now + std::min(timeout, kMaxTimeout);
    next_deadline = std::min(next_deadline, deadline);
    return deadline;
  }

  Error timeout_error() const {
    std::string text =
        "no answer from the broker within " + std::to_string(options.rpc_timeout.count()) + " ms";
    if (blocked_reason) text += ", which has blocked this connection: " + *blocked_reason;
    return Error(ErrorKind::timeout, text);
  }
};

}  // namespace stoat::client
