#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace stoat::bench {

// When each publish that waits for its confirm was sent. Confirms may come in any order.
//
// Owner: PerfProducer. Thread: its owner's.
// Invariant: every tag below oldest_ is settled; outstanding_ of those from there to newest_ are
// not.
class PerfConfirmWindow {
 public:
  explicit PerfConfirmWindow(std::size_t limit)
      : limit_(limit), times_(std::bit_ceil(limit * kHoles), kSettled) {}

  std::uint64_t outstanding() const { return outstanding_; }
  // How many more may be sent.
  std::size_t room() const {
    const std::uint64_t span = newest_ + 1 - oldest_;
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(limit_ - outstanding_, times_.size() - span));
  }
  // REQUIRES: room() > 0.
  void sent(std::int64_t time_ns) {
    slot(++newest_) = time_ns;
    ++outstanding_;
  }
  // Settles `tag`, and all before it if multiple: settled(time_ns) for each. False: the broker
  // names a tag that does not wait.
  template <class Settled>
  bool settle(std::uint64_t tag, bool multiple, Settled settled) {
    if (tag > newest_ || tag < oldest_) return false;
    if (!multiple && slot(tag) == kSettled) return false;
    for (std::uint64_t at = multiple ? oldest_ : tag; at <= tag; ++at) {
      std::int64_t& time = slot(at);
      if (time == kSettled) continue;
      settled(time);
      time = kSettled;
      --outstanding_;
    }
    while (oldest_ <= newest_ && slot(oldest_) == kSettled) ++oldest_;
    return true;
  }

 private:
  static constexpr std::int64_t kSettled = std::numeric_limits<std::int64_t>::min();
  // Later tags may overtake one that waits by so many windows.
  static constexpr std::size_t kHoles = 4;

  std::int64_t& slot(std::uint64_t tag) { return times_[tag & (times_.size() - 1)]; }

  const std::size_t limit_;
  std::vector<std::int64_t> times_;
  std::uint64_t oldest_ = 1;
  std::uint64_t newest_ = 0;
  std::uint64_t outstanding_ = 0;
};

}  // namespace stoat::bench
