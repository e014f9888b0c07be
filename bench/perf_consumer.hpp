#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/perf_connection.hpp"
#include "bench/perf_figures.hpp"
#include "bench/perf_options.hpp"
#include "bench/perf_received.hpp"
#include "bench/perf_stamp.hpp"

namespace stoat::bench {

// Consumes from one queue or several on a connection of its own, acknowledges, and checks what
// comes. Never waits but in close().
//
// Owner: PerfConsumers. Thread: its owner's.
class PerfConsumer {
 public:
  // `received`: by queue; shared by the consumers of a thread.
  PerfConsumer(const PerfOptions& options, int index, std::vector<PerfReceived>& received,
               ConsumerFigures& figures);

  int fd() const { return connection_.fd(); }
  bool subscribed() const { return consume_oks_ == queues_.size(); }
  // Takes what the broker sent.
  void receive(std::span<char> scratch);
  // Sends what the socket had no room for.
  void flush() { connection_.flush(); }
  bool socket_full() const { return connection_.unsent_bytes() > 0; }
  // Acknowledges what is short of ack_every.
  void ack_rest();
  void close() { connection_.close(); }

 private:
  // A delivery whose content has not all come.
  struct Delivery {
    std::uint64_t tag = 0;
    std::size_t queue = 0;  // of queues_
    bool redelivered = false;
    bool headed = false;
    std::uint64_t body_left = 0;
    std::array<char, PerfStamp::kBytes> front;  // of the body
    std::size_t front_bytes = 0;
  };

  void take(const PerfConnection::Event& event);
  void take_method(std::string_view payload);
  void take_body(std::string_view bytes);
  void finish_delivery();
  void check(const PerfStamp& stamp);
  void ack();

  const PerfOptions& options_;
  ConsumerFigures& figures_;
  std::vector<PerfReceived>& received_;
  PerfConnection connection_;
  const std::vector<int> queues_;
  // The next sequence that is in order, by place in queues_ and producer.
  std::vector<std::vector<std::uint64_t>> expected_;
  std::size_t consume_oks_ = 0;
  Delivery delivery_;
  int unacked_ = 0;
  std::uint64_t newest_tag_ = 0;
  std::int64_t now_ns_ = 0;    // when what is being read came
  std::uint64_t counted_ = 0;  // deliveries of this read
};

}  // namespace stoat::bench
