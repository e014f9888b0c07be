#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "broker/message.hpp"

// What travels between a connection's worker and a queue's home, in batches: plain values, so that
// it does not matter whether both are the same thread. Order is kept per sender.

namespace stoat::broker {

// A channel as a home sees it. The incarnation tells a reused channel number from its former life,
// so that an old delivery or confirm never reaches the new one.
struct ChannelRef {
  ChannelNumber number;
  ChannelIncarnation incarnation;
  friend bool operator==(const ChannelRef&, const ChannelRef&) = default;
};

// Where a message stands in its queue, as a settle names it.
struct Position {
  std::uint8_t stream = 0;
  Sequence sequence;
  friend bool operator==(const Position&, const Position&) = default;
};

// --- connection to home ---

struct Publish {
  QueueId queue;
  MessagePtr message;
  ChannelRef channel;
  PublishTag tag;  // 0: the channel is not in confirm mode
};

enum class SettleKind : std::uint8_t {
  ack,          // done with
  sent,         // no_ack: the bytes were handed to the kernel; done with
  reject,       // done with, unwanted: dead-letters where the queue says so
  requeue,      // back to its position, redelivered from now on
  redeliver,    // the same, and for the same consumer if that can take it (basic.recover)
  undelivered,  // never reached the socket: back to its position as if nothing had been
};

// Deliveries first..last (inclusive, of one queue and stream, all held by the sender).
struct Settle {
  QueueId queue;
  std::uint8_t stream = 0;
  SettleKind kind = SettleKind::ack;
  Sequence first;
  Sequence last;
};

// The channel's answer to Outbox::wants: a consumer may make `count` more deliveries now.
struct Lease {
  QueueId queue;
  ConsumerId consumer;
  std::uint32_t count = 0;
};

struct ToHome {
  std::vector<Publish> publishes;
  std::vector<Settle> settles;
  std::vector<Lease> leases;
  // Delivery bytes handed to the kernel since the last batch: credit that the home may stage anew.
  std::uint64_t written_bytes = 0;

  bool empty() const {
    return publishes.empty() && settles.empty() && leases.empty() && written_bytes == 0;
  }
  void clear() {
    publishes.clear();
    settles.clear();
    leases.clear();
    written_bytes = 0;
  }
};

// --- home to connection ---

struct Delivery {
  ChannelRef channel;
  ConsumerId consumer;
  QueueId queue;
  Position position;
  MessagePtr message;
  bool redelivered = false;
  bool no_ack = false;
};

// Publishes first..last of one channel are decided by this home; a tag that went to several of its
// queues is answered once, with the worst.
struct Confirm {
  ChannelRef channel;
  PublishTag first;
  PublishTag last;
  bool nack = false;
};

// The queue took the consumer away (deleted): basic.cancel to clients that can hear it.
struct ConsumerCancelled {
  ChannelRef channel;
  ConsumerId consumer;
};

// A consumer of a channel with a channel-wide prefetch has messages waiting and no lease.
struct LeaseWanted {
  ChannelRef channel;
  ConsumerId consumer;
  QueueId queue;
};

// Deliveries of a lease that were not made; nothing is waiting any more.
struct LeaseReturned {
  ChannelRef channel;
  ConsumerId consumer;
  std::uint32_t count = 0;
};

struct ToConnection {
  std::vector<Delivery> deliveries;
  std::vector<Confirm> confirms;
  std::vector<ConsumerCancelled> cancelled;
  std::vector<LeaseWanted> wanted;
  std::vector<LeaseReturned> returned;
  // Published bytes that are safe (or were never to be): the publisher may be read that much
  // further.
  std::uint64_t taken_bytes = 0;

  bool empty() const {
    return deliveries.empty() && confirms.empty() && cancelled.empty() && wanted.empty() &&
           returned.empty() && taken_bytes == 0;
  }
  void clear() {
    deliveries.clear();
    confirms.clear();
    cancelled.clear();
    wanted.clear();
    returned.clear();
    taken_bytes = 0;
  }
};

}  // namespace stoat::broker
