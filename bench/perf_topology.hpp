#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/perf_connection.hpp"
#include "bench/perf_options.hpp"

namespace stoat::bench {

// Where a producer publishes to.
struct PerfDestination {
  std::string exchange;
  std::string routing_key;
  std::string properties;  // as in the content header: flags and list
};

// The destinations that a producer takes in turn.
std::vector<PerfDestination> destinations_of(const PerfOptions& options, int producer);
// The queues that a consumer takes.
std::vector<int> queues_of(const PerfOptions& options, int consumer);

// Declares queues, exchange and bindings; empties the queues unless they are to be drained.
void set_up(const PerfOptions& options, PerfConnection& connection);
void tear_down(const PerfOptions& options, PerfConnection& connection);
// Ready messages in all queues.
std::uint64_t depth_of(const PerfOptions& options, PerfConnection& connection);
// Declares NAME-0 to NAME-(count-1), durable.
void declare_queues(const PerfOptions& options, PerfConnection& connection, int count);

}  // namespace stoat::bench
