#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/perf_figures.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_poller.hpp"
#include "bench/perf_producer.hpp"

namespace stoat::bench {

// The producers of one thread.
//
// Owner: PerfRun. Thread: construction and close() on the owner's, run() on a thread of its own;
// figures() on any.
class PerfProducers {
 public:
  // Connects the producers `share`, share + producer_threads…
  PerfProducers(const PerfOptions& options, int share);

  // Until all have done what was asked, or `stop` is set; then until all is confirmed, or nothing
  // has been for wait_seconds.
  void run(const std::atomic<bool>& stop);
  void close();
  const ProducerFigures& figures() const { return figures_; }

 private:
  void receive(std::int64_t timeout_ns);
  // Lets those publish that can; when the next can, or PerfProducer::kNever.
  std::int64_t publish();
  void settle_the_rest();

  const PerfOptions& options_;
  ProducerFigures figures_;
  PerfPoller poller_;
  std::vector<std::unique_ptr<PerfProducer>> producers_;
  std::vector<bool> awaits_socket_;  // by producer: the poller looks for room to write
  std::vector<char> scratch_;
};

}  // namespace stoat::bench
