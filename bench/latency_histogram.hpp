#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stoat::bench {

// Buckets of durations, 1/32 wide relative to their value, so that a percentile is at most about
// 3 % off at any magnitude.
struct LatencyBuckets {
  static constexpr std::size_t kSubBits = 5;
  static constexpr std::size_t kSubBuckets = 1 << kSubBits;
  static constexpr std::size_t kCount = 60 * kSubBuckets;

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
};

// How often each duration came, of one thread or of several added up.
//
// Thread: one.
class LatencyHistogram {
 public:
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
        return static_cast<double>(std::min(LatencyBuckets::upper_bound_of(bucket), max_ns_)) / 1e6;
    }
    return max_ms();
  }
  // What came since `earlier`, an older state of the same; the maximum stays that of the whole.
  LatencyHistogram since(const LatencyHistogram& earlier) const {
    LatencyHistogram result = *this;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket)
      result.counts_[bucket] -= earlier.counts_[bucket];
    result.count_ -= earlier.count_;
    return result;
  }

 private:
  friend class LatencyRecorder;

  std::array<std::uint64_t, LatencyBuckets::kCount> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

// Takes durations down while others look on: a few plain instructions a sample.
//
// Thread: record() on one, add_to() on any; a sample shows in full or not at all.
class LatencyRecorder {
 public:
  void record(std::int64_t latency_ns, std::uint64_t times = 1) {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency_ns, 0));
    auto& count = counts_[LatencyBuckets::bucket_of(ns)];
    // One writer, so no atomic addition is needed.
    count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
    if (ns > max_ns_.load(std::memory_order_relaxed)) max_ns_.store(ns, std::memory_order_relaxed);
  }
  void add_to(LatencyHistogram& sum) const {
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      const std::uint64_t count = counts_[bucket].load(std::memory_order_relaxed);
      sum.counts_[bucket] += count;
      sum.count_ += count;
    }
    sum.max_ns_ = std::max(sum.max_ns_, max_ns_.load(std::memory_order_relaxed));
  }

 private:
  std::array<std::atomic<std::uint64_t>, LatencyBuckets::kCount> counts_{};
  std::atomic<std::uint64_t> max_ns_{0};
};

}  // namespace stoat::bench
