#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/assert.hpp"
#include "broker/message.hpp"

namespace stoat::broker {

// Every message handed to the persister has a number of its own at this home; numbers rise, and
// commit in order. So one comparison tells whether a message is on disk yet.
using PutNumber = std::uint64_t;
inline constexpr PutNumber kOnDisk = 0;                    // before any number: committed for long
inline constexpr PutNumber kOnlyInMemory = ~PutNumber{0};  // above any number: never committed

// A message as its queue holds it. The body is absent while the persister or the disk has it, and
// comes back from there when the message is to be delivered.
struct HeldMessage {
  MessagePtr body;
  PutNumber put = kOnlyInMemory;
  std::uint32_t size = 0;    // of the stored block
  bool durable = false;      // survives a restart; otherwise it is at most spilled
  bool redelivered = false;  // on its next delivery
};

inline std::uint32_t stored_size(const Message& message) {
  const std::size_t size = message.stored().size();
  STOAT_ASSERT(size <= std::numeric_limits<std::uint32_t>::max(), size);
  return static_cast<std::uint32_t>(size);
}

}  // namespace stoat::broker
