#pragma once

#include <cstdint>

#include "bench/perf_figures.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_process.hpp"

namespace stoat::bench {

// What a run came to, as it is printed.
struct PerfReport {
  PerfTotals totals;
  double sent_rate = 0, confirmed_rate = 0, received_rate = 0;  // a second
  double seconds = 0;
  std::uint64_t left = 0;  // in the queues at the end
  PerfProcess broker;      // cpu_seconds: of the run alone
  bool failed = false;     // by an error that was printed

  double broker_cpu_us_per_message() const;
  bool clean() const { return !failed && totals.clean(); }
  // For people: the last line begins with "N sent, N received, N refused".
  void print() const;
  void print_json(const PerfOptions& options) const;
};

// A second of a run.
void print_progress(const PerfTotals& before, const PerfTotals& now);

}  // namespace stoat::bench
