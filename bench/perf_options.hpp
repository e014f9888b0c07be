#pragma once

#include <stoat/client/uri.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/field_value.hpp"

namespace stoat::bench {

// What one run of stoat-perf is asked to do. Names follow RabbitMQ's PerfTest where it has them.
struct PerfOptions {
  enum class Phase { both, fill, drain };

  client::Uri uri;
  int producers = 1;
  int consumers = 1;
  int queues = 1;
  std::string queue = "stoat-perf";  // before -0, -1…
  wire::Table queue_arguments;
  std::string exchange_type;  // empty: the default exchange
  std::string exchange;
  int bindings = 0;  // further ones that match no message
  std::size_t size_bytes = 1024;
  bool persistent = true;
  bool mandatory = false;
  double rate = 0;     // messages a second and producer; 0: as fast as it goes
  int confirm = 500;   // unconfirmed publishes a producer may have; 0: without confirms
  int prefetch = 500;  // 0: no limit
  int ack_every = 10;  // deliveries an ack; 0: no acks
  double seconds = 10;
  std::uint64_t messages = 0;  // of a producer; 0: as many as `seconds` have room for
  double wait_seconds = 10;    // without progress until what is missing counts as lost
  double interval_seconds = 1;
  Phase phase = Phase::both;
  int producer_threads = 1;
  int consumer_threads = 1;
  bool keep = false;
  bool json = false;
  int broker_pid = 0;  // 0: not on this machine, or of no interest
  int idle_connections = 0;
  int declare_queues = 0;

  std::string queue_name(int index) const { return queue + '-' + std::to_string(index); }
  bool produces() const { return phase != Phase::drain && producers > 0; }
  bool consumes() const { return phase != Phase::fill && consumers > 0; }
  // Copies of each message that is published.
  std::uint64_t copies() const {
    return exchange_type == "fanout" ? static_cast<std::uint64_t>(queues) : 1;
  }
};

// nullopt: there is nothing to run, and the process ends with *exit_status (help was asked for, or
// the usage is bad and standard error says why).
std::optional<PerfOptions> parse_perf_options(int argc, char** argv, int* exit_status);

}  // namespace stoat::bench
