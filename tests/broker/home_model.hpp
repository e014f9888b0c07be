#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/home.hpp"
#include "home_driver.hpp"

namespace stoat::testing {

// What a home's queues must hold, kept in the plainest way beside it, with one checker per
// property. A checker that fails records a gtest failure; the simulation stops at the first.
//
// Properties: every tag is confirmed exactly once, and not before its persistent messages survive a
// power cut or were settled; every delivery is of a message that is ready, whole, at its position
// and with its redelivered flag; nothing ready is passed over; a consumer holds no more than its
// prefetch and its leases; counts agree; after a crash, what was confirmed and not settled is
// there.
class HomeModel {
 public:
  struct Message {
    std::uint64_t queue = 0;
    std::uint64_t sequence = 0;
    std::string body;
    std::size_t size = 0;  // stored
    bool durable = false;  // persistent on a durable queue
    bool redelivered = false;
    bool delivered_ever = false;
    bool safe = false;           // confirmed, or of a transaction that is committed
    std::uint64_t consumer = 0;  // who holds it; 0: basic.get
    std::uint64_t connection = 0;
    std::optional<std::uint64_t> transaction;  // that settles it, not released yet
    bool written = true;
    enum class State { ready, unacked, prepared, over } state = State::ready;
  };
  struct Queue {
    broker::QueueSpec spec;
    bool single_active = false;
    bool dying = false;
    std::uint64_t next = 1;
    std::map<std::uint64_t, Message> messages;  // by sequence; those that are over as well
  };
  struct Consumer {
    std::uint64_t connection = 0;
    std::uint64_t queue = 0;
    std::uint32_t prefetch = 0;
    std::uint32_t unacked = 0;
    std::int64_t leased = 0;  // granted and not used or returned
    bool no_ack = false;
    bool limited = false;
    bool paused = false;
    bool wants_lease = false;
  };
  struct Tag {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> messages;  // queue, sequence
  };
  struct Connection {
    std::uint64_t next_tag = 1;
    std::map<std::uint64_t, Tag> unconfirmed;
    std::uint64_t untaken_bytes = 0;
    // Deliveries that its socket has not taken, oldest first.
    struct Unwritten {
      std::uint64_t queue = 0;
      std::uint64_t sequence = 0;
      std::uint64_t size = 0;
    };
    std::vector<Unwritten> unwritten;
    std::uint64_t unwritten_bytes = 0;
  };

  explicit HomeModel(HomeDriver& driver) : driver_(driver) {}

  std::map<std::uint64_t, Queue> queues;
  std::map<std::uint64_t, Consumer> consumers;
  std::map<std::uint64_t, Connection> connections;

  Message& at(std::uint64_t queue, std::uint64_t sequence) {
    return queues.at(queue).messages.at(sequence);
  }
  // A new message at the queue's next position.
  Message& add(std::uint64_t queue, const std::string& body, std::size_t size, bool persistent);
  // The sender settles a message that it holds.
  void settle(Message& message, broker::SettleKind kind);
  std::vector<Message*> held_by(std::uint64_t connection);

  // Takes what was handed to connections since the last call, one turn's, and checks it.
  void absorb();
  void got(std::uint64_t connection, std::uint64_t queue, const broker::Got& got);
  void check_counts();
  // REQUIRES: the home and the store have nothing to do.
  void check_nothing_stands_still();
  // After ManualStore::crash() or a clean stop, before the restart: the model becomes what the
  // store has.
  void reset_to_store(bool clean);

 private:
  using Position = std::pair<std::uint64_t, std::uint64_t>;

  void absorb_delivery(std::uint64_t connection, const broker::Delivery& delivery);
  void check_delivered(Message& message, const broker::Message& found, bool redelivered);
  void absorb_confirm(std::uint64_t connection, const broker::Confirm& confirm);
  void check_order();

  HomeDriver& driver_;
  std::map<std::uint64_t, std::uint64_t> highest_delivered_;  // by queue, in this turn
};

}  // namespace stoat::testing
