#pragma once

#include <chrono>
#include <cstdint>

// Time as state machines see it: handed in, so that a test can jump. Timers run on the steady
// clock; what is stored is wall-clock milliseconds since the epoch.

namespace stoat {

using SteadyTime = std::chrono::steady_clock::time_point;

struct WallTime {
  std::int64_t ms_since_epoch = 0;
  friend constexpr auto operator<=>(const WallTime&, const WallTime&) = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime steady_now() const = 0;
  virtual WallTime wall_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
  }
};

}  // namespace stoat
