#pragma once

#include <cstddef>

#include "base/assert.hpp"
#include "broker/home_limits.hpp"

namespace stoat::broker {

// Message memory that the queues of a home share.
// Owner: Home. Thread: its worker's.
// Invariant: used() is the sum of all shares.
class WindowBudget {
 public:
  explicit WindowBudget(const HomeLimits& limits) : limits_(limits) {}
  std::size_t used() const { return used_; }

 private:
  friend class WindowShare;
  const HomeLimits& limits_;
  std::size_t used_ = 0;
};

// The part of the budget that one queue uses. A queue always gets its minimum, whatever the others
// use, so that no queue stands still because others are long.
// Owner: Queue. Gives everything back at its end.
class WindowShare {
 public:
  explicit WindowShare(WindowBudget& home) : home_(home) {}
  ~WindowShare() { home_.used_ -= used_; }
  WindowShare(const WindowShare&) = delete;
  WindowShare& operator=(const WindowShare&) = delete;

  static constexpr std::size_t cost(std::size_t message_bytes) {
    return message_bytes + kMessageOverheadBytes;
  }

  std::size_t used() const { return used_; }
  // How much more this queue may hold now.
  std::size_t room() const {
    const HomeLimits& limits = home_.limits_;
    if (used_ < limits.min_queue_window_bytes) {
      const std::size_t to_min = limits.min_queue_window_bytes - used_;
      return room_above_min() > to_min ? room_above_min() : to_min;
    }
    return room_above_min();
  }
  void charge(std::size_t bytes) {
    used_ += bytes;
    home_.used_ += bytes;
  }
  void release(std::size_t bytes) {
    STOAT_ASSERT(bytes <= used_ && used_ <= home_.used_, bytes, used_, home_.used_);
    used_ -= bytes;
    home_.used_ -= bytes;
  }

 private:
  std::size_t room_above_min() const {
    const HomeLimits& limits = home_.limits_;
    if (used_ >= limits.max_queue_window_bytes || home_.used_ >= limits.home_window_bytes) return 0;
    const std::size_t own = limits.max_queue_window_bytes - used_;
    const std::size_t shared = limits.home_window_bytes - home_.used_;
    return own < shared ? own : shared;
  }

  WindowBudget& home_;
  std::size_t used_ = 0;
};

}  // namespace stoat::broker
