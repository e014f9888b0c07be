#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "broker/ring_buffer.hpp"
#include "broker/traffic.hpp"

namespace stoat::broker {

struct Consumer;
class Outboxes;

// What a home has for one connection and has not handed on yet, and how far the connection's socket
// lags behind: the delivery window.
//
// Owner: Outboxes. Thread: the home's worker.
// Invariant: deliveries handed out and not reported written, staged ones included, overdraw the
// window by one message at most.
class Outbox {
 public:
  Outbox(Outboxes& all, ConnectionId connection, WorkerIndex worker, std::uint64_t window_bytes)
      : all_(all), connection_(connection), worker_(worker), window_bytes_(window_bytes) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  ConnectionId connection() const { return connection_; }
  WorkerIndex worker() const { return worker_; }

  bool has_room() const { return unwritten_bytes_ < window_bytes_; }
  // REQUIRES: has_room(). `bytes` is the message's stored size.
  void deliver(Delivery delivery, std::uint64_t bytes);
  // The socket took that much. Consumers that waited for it get listed again.
  void written(std::uint64_t bytes);
  void wait_for_room(Consumer& consumer) { waiting_.push_back(&consumer); }

  // Contiguous tags of a channel become one range.
  void confirm(ChannelRef channel, PublishTag tag);
  void add_taken(std::uint64_t bytes) { staged().taken_bytes += bytes; }
  void consumer_cancelled(ChannelRef channel, ConsumerId consumer);
  void want_lease(ChannelRef channel, ConsumerId consumer, QueueId queue);
  void return_lease(ChannelRef channel, ConsumerId consumer, std::uint32_t count);

  // --- the connection's consumers at this home ---
  void add_consumer(Consumer& consumer);
  void remove_consumer(Consumer& consumer);
  Consumer* find_consumer(ConsumerId id);
  bool has_consumers() const { return !consumers_.empty(); }
  // A lease for a consumer that is gone goes back to its channel, which still counts it.
  void return_stray_lease(ConsumerId consumer, std::uint32_t count);

 private:
  friend class Outboxes;
  ToConnection& staged();

  Outboxes& all_;
  const ConnectionId connection_;
  const WorkerIndex worker_;
  const std::uint64_t window_bytes_;
  std::uint64_t unwritten_bytes_ = 0;
  std::unique_ptr<ToConnection> staged_;  // lent by all_ while there is something
  std::vector<Consumer*> waiting_;
  boost::unordered_flat_map<ConsumerId, Consumer*, std::hash<ConsumerId>> consumers_;
  // Consumers that left while a lease may have been on its way; the last few, for a lease that is
  // not on its way yet is not granted any more.
  struct LeftWanting {
    ConsumerId consumer;
    ChannelRef channel;
  };
  RingBuffer<LeftWanting> left_wanting_;
};

}  // namespace stoat::broker
