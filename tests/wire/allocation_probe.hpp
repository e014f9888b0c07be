#pragma once

#include <cstddef>

namespace stoat::wire::test {

// Sees every operator new of this thread while it lives. One at a time.
class AllocationProbe {
 public:
  AllocationProbe();
  ~AllocationProbe();
  AllocationProbe(const AllocationProbe&) = delete;
  AllocationProbe& operator=(const AllocationProbe&) = delete;

  std::size_t largest_bytes() const;  // the largest single allocation
  std::size_t total_bytes() const;
  long live_bytes() const;  // allocated and not freed since the probe began
};

}  // namespace stoat::wire::test
