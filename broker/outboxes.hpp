#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <vector>

#include "broker/outbox.hpp"

namespace stoat::broker {

// The outboxes of one home by connection, and those among them that hold something.
//
// Owner: Home. Thread: its worker's.
class Outboxes {
 public:
  explicit Outboxes(std::uint64_t window_bytes) : window_bytes_(window_bytes) {}

  // Finds or makes. Stays valid until forget().
  Outbox& open(ConnectionId connection, WorkerIndex worker);
  Outbox* find(ConnectionId connection);
  // REQUIRES: no consumers. What is staged is dropped.
  void forget(ConnectionId connection);

  // Calls hand_on(connection, worker, ToConnection&) for all that hold something; what is staged
  // meanwhile waits for the next call.
  template <class HandOn>
  void flush(HandOn hand_on) {
    flushing_.swap(dirty_);
    for (std::size_t i = 0; i < flushing_.size(); ++i) {
      if (flushing_[i] != nullptr) hand_on_one(*flushing_[i], hand_on);
    }
    flushing_.clear();
  }
  template <class HandOn>
  void flush_one(Outbox& outbox, HandOn hand_on) {
    if (outbox.staged_ == nullptr) return;
    forget_dirty(outbox);
    hand_on_one(outbox, hand_on);
  }

 private:
  friend class Outbox;

  template <class HandOn>
  void hand_on_one(Outbox& outbox, HandOn& hand_on) {
    auto staged = std::move(outbox.staged_);
    hand_on(outbox.connection(), outbox.worker(), *staged);
    give_back(std::move(staged));
  }
  std::unique_ptr<ToConnection> lend(Outbox& to);
  void give_back(std::unique_ptr<ToConnection> batch);
  void forget_dirty(Outbox& outbox);

  const std::uint64_t window_bytes_;
  boost::unordered_flat_map<ConnectionId, std::unique_ptr<Outbox>, std::hash<ConnectionId>> all_;
  // Looked up last: reads and completions come in runs of one connection.
  ConnectionId last_id_;
  Outbox* last_ = nullptr;
  std::vector<Outbox*> dirty_;
  std::vector<Outbox*> flushing_;
  // Batches whose vectors have grown already, for whoever stages next.
  std::vector<std::unique_ptr<ToConnection>> spare_;
};

}  // namespace stoat::broker
