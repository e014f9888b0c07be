#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/perf_consumers.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_process.hpp"
#include "bench/perf_producers.hpp"
#include "bench/perf_report.hpp"

namespace stoat::bench {

// One run of stoat-perf: sets up, lets producers and consumers go, waits until what was sent has
// come, takes down, reports.
//
// Owner: main. Thread: run() on the owner's; starts one for each share of producers and consumers.
class PerfRun {
 public:
  explicit PerfRun(const PerfOptions& options) : options_(options) {}

  // The exit status: 0 when every message came once, in order, and none was refused.
  // `interrupted` set from outside ends it early. Errors: PerfError when it could not begin.
  int run(const std::atomic<bool>& interrupted);

 private:
  void connect();
  void start(std::function<void()> part, std::atomic<int>* running);
  void watch_producers(const std::atomic<bool>& interrupted);
  void wait_for_deliveries(const std::atomic<bool>& interrupted);
  // Sleeps a little and prints the progress line when it is due.
  void pass_time();
  void join();
  void take_down(PerfReport& report);
  bool failed();

  PerfTotals totals() const;
  std::uint64_t expected(const PerfTotals& totals) const;
  PerfReport make_report(const PerfTotals& totals) const;

  const PerfOptions& options_;
  std::vector<std::unique_ptr<PerfProducers>> producers_;
  std::vector<std::unique_ptr<PerfConsumers>> consumers_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_producing_{false}, stop_consuming_{false};
  std::atomic<int> producing_{0}, consuming_{0};  // threads
  std::mutex mutex_;
  std::string failure_;  // the first one; under mutex_

  std::uint64_t drained_from_ = 0;  // messages that stood in the queues
  std::int64_t begin_ns_ = 0;
  std::int64_t next_line_ns_ = 0;
  PerfTotals last_line_;
  PerfProcess broker_before_;
};

}  // namespace stoat::bench
