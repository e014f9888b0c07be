#pragma once

#include <cstddef>
#include <cstdint>

namespace stoat::broker {

// Delivery bytes that a home may have staged for one connection and its socket has not yet taken.
inline constexpr std::uint64_t kDeliveryWindowBytes = 1u << 20;

// What a message in memory costs beside its stored bytes: the entry, the block's header, the
// allocator's share. Small messages are limited by it rather than by their bytes.
inline constexpr std::size_t kMessageOverheadBytes = 128;

inline constexpr std::size_t kMaxQueueWindowBytes = 8u << 20;
inline constexpr std::size_t kMinQueueWindowBytes = 64u << 10;
inline constexpr std::size_t kHomeWindowBytes = 48u << 20;

// The limits of a home; tests make them tiny.
struct HomeLimits {
  // Message memory of one queue: up to max while the home's share lasts, always as much as min.
  // Reads from disk come in portions of at least min, and of at least one message: by so much it
  // may be overdrawn.
  std::size_t max_queue_window_bytes = kMaxQueueWindowBytes;
  std::size_t min_queue_window_bytes = kMinQueueWindowBytes;
  std::size_t home_window_bytes = kHomeWindowBytes;

  // One read from the store.
  std::size_t read_messages = 1024;
  std::size_t read_bytes = 1u << 20;

  // A store batch takes no further put once it has this many bytes.
  std::size_t max_batch_bytes = 8u << 20;
  // Settled ranges that wait for something to be written with; more of them are written alone.
  std::size_t max_waiting_ranges = 1024;

  // How far numbers are persisted ahead: from min, doubling each time, to max.
  std::uint64_t min_numbers_step = 64;
  std::uint64_t max_numbers_step = 65'536;

  std::uint64_t delivery_window_bytes = kDeliveryWindowBytes;
};

}  // namespace stoat::broker
