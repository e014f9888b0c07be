#pragma once

#include <atomic>
#include <cstdint>

#include "bench/latency_histogram.hpp"

namespace stoat::bench {

// A number that one thread counts up and others look at.
class PerfCount {
 public:
  void add(std::uint64_t more) {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// What the producers of one thread have done.
struct ProducerFigures {
  PerfCount sent, confirmed, refused, returned, unconfirmed;
  std::atomic<std::int64_t> last_ns{0};  // of a publish or its confirm
  LatencyRecorder confirm_latency;
};

// What the consumers of one thread have got.
struct ConsumerFigures {
  PerfCount received;
  PerfCount redelivered;
  PerfCount seen_before;  // redelivered, and received by us before
  PerfCount duplicated;   // received twice, though not marked as redelivered
  PerfCount disordered;   // behind a later one of its producer and queue
  PerfCount strange;      // not published by stoat-perf
  std::atomic<std::int64_t> first_ns{0}, last_ns{0};
  LatencyRecorder delivery_latency;
};

// All of a run, added up.
struct PerfTotals {
  std::uint64_t sent = 0, confirmed = 0, refused = 0, returned = 0, unconfirmed = 0;
  std::uint64_t received = 0, redelivered = 0, seen_before = 0, duplicated = 0, disordered = 0,
                strange = 0, lost = 0;
  LatencyHistogram confirm_latency, delivery_latency;

  // Every message once.
  std::uint64_t received_once() const { return received - seen_before - duplicated; }
  bool clean() const {
    return refused + returned + unconfirmed + duplicated + disordered + strange + lost == 0;
  }
};

}  // namespace stoat::bench
