#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/perf_consumer.hpp"
#include "bench/perf_figures.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_poller.hpp"
#include "bench/perf_received.hpp"

namespace stoat::bench {

// The consumers of one thread. All that share a queue are on the same one.
//
// Owner: PerfRun. Thread: construction and close() on the owner's, run() on a thread of its own;
// figures() on any.
class PerfConsumers {
 public:
  // Connects the consumers whose first queue falls to `share` of consumer_threads, and waits until
  // they are subscribed.
  PerfConsumers(const PerfOptions& options, int share);

  // Until `stop` is set.
  void run(const std::atomic<bool>& stop);
  void close();
  const ConsumerFigures& figures() const { return figures_; }

 private:
  void await_subscriptions();
  void receive();
  void watch_socket(std::size_t index);

  const PerfOptions& options_;
  ConsumerFigures figures_;
  PerfPoller poller_;
  std::vector<PerfReceived> received_;  // by queue
  std::vector<std::unique_ptr<PerfConsumer>> consumers_;
  std::vector<bool> awaits_socket_;  // by consumer: the poller looks for room to write
  std::vector<char> scratch_;
};

}  // namespace stoat::bench
