#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/perf_batch.hpp"
#include "bench/perf_confirm_window.hpp"
#include "bench/perf_connection.hpp"
#include "bench/perf_figures.hpp"
#include "bench/perf_options.hpp"

namespace stoat::bench {

// Publishes on a connection of its own and keeps account of the confirms. Never waits.
//
// Owner: PerfProducers. Thread: its owner's.
class PerfProducer {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  PerfProducer(const PerfOptions& options, int index, ProducerFigures& figures);

  int fd() const { return connection_.fd(); }
  // When it began; messages of an asked rate are due from then on.
  void begin(std::int64_t now_ns);
  // Takes what the broker said.
  void receive(std::span<char> scratch);
  // Publishes what is due and has room, at most a batch.
  void publish();
  // No more messages; those sent still wait for their confirms.
  void stop() { stopped_ = true; }

  // When publish() has something to do: a time, or kNever while it waits for the socket or the
  // broker.
  std::int64_t due_ns() const;
  bool socket_full() const { return !unsent_.empty(); }
  // All is sent and confirmed.
  bool done() const;
  // At the end: what was never confirmed counts as such.
  void finish();
  void close() { connection_.close(); }

 private:
  void take_method(std::string_view payload);
  void settle(std::uint64_t tag, bool multiple, PerfCount& count);
  std::uint64_t left() const;
  std::int64_t due_ns_of(std::uint64_t message) const;
  std::size_t count_due(std::int64_t now_ns, std::size_t most) const;
  void send(std::string_view frames, std::int64_t now_ns);

  const PerfOptions& options_;
  const std::uint32_t index_;
  ProducerFigures& figures_;
  PerfConnection connection_;
  const std::vector<PerfDestination> destinations_;
  PerfBatch batch_;
  PerfConfirmWindow window_;
  std::size_t destination_ = 0;           // of the next message
  std::vector<std::uint64_t> sequences_;  // by destination, of the next message
  std::uint64_t sent_ = 0;
  std::int64_t begin_ns_ = 0;
  std::string_view unsent_;  // of batch_, which the socket had no room for
  bool stopped_ = false;
};

}  // namespace stoat::bench
