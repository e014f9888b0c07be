// stoat-perf: a load generator for AMQP 0-9-1 brokers, in the manner of RabbitMQ's PerfTest.
//
//   stoat-perf amqp://localhost --producers 2 --consumers 2 --size 1024 --seconds 10
//
// It spends as little as it can on a message, so that the broker is what is measured, and checks
// what comes: order, losses, duplicates. Prints a line a second and a summary. Exit status: 0 when
// all went well, 1 when a message was refused, returned, lost, duplicated or out of order or the
// broker failed, 2 for bad usage.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>

#include "bench/perf_connection.hpp"
#include "bench/perf_idle.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_run.hpp"
#include "bench/perf_topology.hpp"

namespace {

namespace bench = stoat::bench;

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // so that a signal handler may set it

int declare_queues(const bench::PerfOptions& options) {
  bench::PerfConnection connection(options.uri, "stoat-perf");
  bench::declare_queues(options, connection, options.declare_queues);
  connection.close();
  std::printf("%d queues declared\n", options.declare_queues);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  int exit_status = 0;
  const auto options = bench::parse_perf_options(argc, argv, &exit_status);
  if (!options) return exit_status;
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  if (options->declare_queues > 0) return declare_queues(*options);
  if (options->idle_connections > 0) return bench::hold_idle_connections(*options, interrupted);
  return bench::PerfRun(*options).run(interrupted);
} catch (const std::exception& error) {
  std::fprintf(stderr, "stoat-perf: %s\n", error.what());
  return 1;
}
