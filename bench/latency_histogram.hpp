#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stoat::bench {

// Counts of durations in buckets that are 1/32 wide relative to their value, so that a percentile
// is at most about 3 % off at any magnitude. Fixed memory, a few instructions a sample.
//
// Thread: one.
class LatencyHistogram {
 public:
  void record(std::chrono::nanoseconds latency) {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
    ++counts_[bucket_of(ns)];
    ++count_;
    max_ns_ = std::max(max_ns_, ns);
  }
  std::uint64_t count() const { return count_; }
  double max_ms() const { return static_cast<double>(max_ns_) / 1e6; }
  // The smallest value that `percent` of the samples do not exceed; 0 without samples.
  double percentile_ms(double percent) const {
    if (count_ == 0) return 0;
    const double rank = static_cast<double>(count_) * percent / 100;
    double seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += static_cast<double>(counts_[bucket]);
      if (counts_[bucket] != 0 && seen >= rank)
        return static_cast<double>(std::min(upper_bound_of(bucket), max_ns_)) / 1e6;
    }
    return max_ms();
  }
  void clear() { *this = LatencyHistogram(); }

 private:
  static constexpr std::size_t kSubBits = 5;
  static constexpr std::size_t kSubBuckets = 1 << kSubBits;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kSubBuckets) return ns;
    const auto shift = static_cast<std::size_t>(std::bit_width(ns)) - kSubBits - 1;
    return (shift << kSubBits) + (ns >> shift);  // ns >> shift is in [32, 64)
  }
  static std::uint64_t upper_bound_of(std::size_t bucket) {
    if (bucket < 2 * kSubBuckets) return bucket;
    const std::size_t shift = (bucket >> kSubBits) - 1;
    const std::uint64_t mantissa = bucket - (shift << kSubBits);
    return ((mantissa + 1) << shift) - 1;
  }

  std::array<std::uint64_t, 60 * kSubBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace stoat::bench
