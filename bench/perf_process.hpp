#pragma once

#include <cstdint>

namespace stoat::bench {

// What the system says of the broker's process; zeros when it says nothing.
struct PerfProcess {
  double cpu_seconds = 0;  // user and system, of all threads, since its start
  double rss_mb = 0;
  double peak_rss_mb = 0;

  static PerfProcess look(int pid);
};

}  // namespace stoat::bench
