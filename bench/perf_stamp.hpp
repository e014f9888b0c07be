#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace stoat::bench {

// Nanoseconds of the steady clock, which all processes of one machine share.
inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The front of every body that is large enough for it: who published it, as which of its messages
// to that destination (from 0), and when. In the machine's byte order, for stoat-perf alone.
struct PerfStamp {
  static constexpr std::uint32_t kMark = 0x53744d51;
  static constexpr std::size_t kBytes = 24;

  std::uint32_t mark = kMark;
  std::uint32_t producer = 0;
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;  // when it was due, so that a broker that falls behind a rate shows it

  void store(char* to) const { std::memcpy(to, this, kBytes); }
  // nullopt: not a body of stoat-perf's.
  static std::optional<PerfStamp> load(std::string_view body) {
    if (body.size() < kBytes) return std::nullopt;
    PerfStamp stamp;
    std::memcpy(&stamp, body.data(), kBytes);
    if (stamp.mark != kMark) return std::nullopt;
    return stamp;
  }
};
static_assert(sizeof(PerfStamp) == PerfStamp::kBytes);

}  // namespace stoat::bench
