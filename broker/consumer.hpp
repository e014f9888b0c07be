#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "broker/traffic.hpp"

namespace stoat::broker {

class Outbox;
class Queue;

// One consumer as its queue sees it.
//
// Owner: Consumers. Outlives its cancel while messages it took are unacknowledged: they name it.
struct Consumer {
  Queue* queue = nullptr;
  Outbox* outbox = nullptr;  // null once it left
  ChannelRef channel;
  ConsumerId id;
  std::int32_t priority = 0;
  std::uint16_t prefetch = 0;  // 0: unlimited
  bool no_ack = false;
  bool exclusive = false;
  bool channel_limited = false;
  bool paused = false;

  std::uint32_t unacked = 0;
  std::uint32_t lease = 0;  // deliveries it may make before the next lease
  bool lease_wanted = false;

  // Where it stands among its queue's consumers; see Consumers.
  bool listed = false;
  bool waits_for_room = false;
  Consumer* previous = nullptr;
  Consumer* next = nullptr;
};

}  // namespace stoat::broker
