#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/perf_options.hpp"
#include "bench/perf_stamp.hpp"
#include "bench/perf_topology.hpp"

namespace stoat::bench {

// The frames of many publishes, encoded once and sent over and over: only the stamps in the bodies
// change. Messages lie in the order in which the producer takes its destinations.
//
// Owner: PerfProducer. Thread: its owner's.
class PerfBatch {
 public:
  PerfBatch(const PerfOptions& options, const std::vector<PerfDestination>& destinations,
            std::uint32_t frame_max_bytes);

  // Begins an empty batch whose first message goes to that destination.
  void start(std::size_t destination);
  // How many messages it still takes.
  std::size_t room() const { return slots_.size() - next_; }
  // Takes the next message in. REQUIRES: room() > 0.
  void add(const PerfStamp& stamp) {
    const Slot& slot = slots_[next_++];
    if (stamped_) stamp.store(frames_.data() + slot.stamp);
    end_ = slot.end;
  }
  std::string_view frames() const { return {frames_.data() + begin_, end_ - begin_}; }

 private:
  struct Slot {
    std::size_t begin, stamp, end;  // in frames_
  };

  std::string frames_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool stamped_;
};

}  // namespace stoat::bench
