#pragma once

#include <atomic>

#include "bench/perf_options.hpp"

namespace stoat::bench {

// Opens idle_connections connections, logged in and with a channel each, says so on standard
// output, and holds them until standard input ends or `interrupted`. 0: all were open to the end.
int hold_idle_connections(const PerfOptions& options, const std::atomic<bool>& interrupted);

}  // namespace stoat::bench
