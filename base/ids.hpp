#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>

// Ids and numbers of the protocol as distinct types, so that a delivery tag cannot be passed where
// a sequence is asked for.

namespace stoat {

template <class Tag, class Rep>
struct StrongId {
  using rep = Rep;
  Rep value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
  constexpr StrongId next() const { return StrongId(static_cast<Rep>(value + 1)); }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) {
    return out << static_cast<std::uint64_t>(id.value);
  }
};

// AMQP channel number, 0 is the connection itself.
using ChannelNumber = StrongId<struct ChannelNumberTag, std::uint16_t>;
// basic.deliver's and basic.ack's delivery tag: per channel, starts at 1.
using DeliveryTag = StrongId<struct DeliveryTagTag, std::uint64_t>;
// The tag of a publish on a channel in confirm mode: starts at 1.
using PublishTag = StrongId<struct PublishTagTag, std::uint64_t>;
// A queue for its whole life; never used again, not even after a restart.
using QueueId = StrongId<struct QueueIdTag, std::uint64_t>;
// A message's position in one stream of one queue.
using Sequence = StrongId<struct SequenceTag, std::uint64_t>;
// A client connection; unique while the process lives.
using ConnectionId = StrongId<struct ConnectionIdTag, std::uint64_t>;
// One opening of a channel number on one connection; tells a reused number from its former life.
using ChannelIncarnation = StrongId<struct ChannelIncarnationTag, std::uint32_t>;
// A consumer at its queue's home; unique per connection.
using ConsumerId = StrongId<struct ConsumerIdTag, std::uint64_t>;
// A worker thread, 0 .. workers-1.
using WorkerIndex = StrongId<struct WorkerIndexTag, std::uint32_t>;

}  // namespace stoat

template <class Tag, class Rep>
struct std::hash<stoat::StrongId<Tag, Rep>> {
  std::size_t operator()(stoat::StrongId<Tag, Rep> id) const noexcept {
    // Fibonacci hashing: ids count upwards, tables want their low bits mixed.
    return static_cast<std::size_t>(static_cast<std::uint64_t>(id.value) * 0x9E3779B97F4A7C15ull);
  }
};
