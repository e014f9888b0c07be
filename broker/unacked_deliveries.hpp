#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "broker/traffic.hpp"

namespace stoat::broker {

// What a channel delivered and its client has not yet settled, by delivery tag.
// Owner: Channel. Thread: the channel's worker.
// Invariants: tags rise; live() counts the entries that are neither settled nor inside a
// transaction; memory is at most twice what is live.
class UnackedDeliveries {
 public:
  struct Entry {
    DeliveryTag tag;
    QueueId queue;
    Sequence sequence;
    ConsumerId consumer;  // 0: basic.get
    // Where in the connection's output its last byte stands; not written up to there, it was never
    // delivered.
    std::uint64_t output_end = 0;
    std::uint8_t stream = 0;
    bool limited = false;  // counts towards the channel-wide prefetch
    enum class State : std::uint8_t { held, in_transaction, gone } state = State::held;
  };

  // Tags count on from 1, also for deliveries that need no settling.
  DeliveryTag next_tag() { return last_tag_ = last_tag_.next(); }
  void add(Entry entry);

  // The held entry of that tag; nullptr when unknown, settled or in the transaction.
  Entry* find(DeliveryTag tag);

  // Calls take(entry) for each held entry with tag <= `up_to` (all of them when it is 0), oldest
  // first; the callee sets the state through settle() or enlist().
  template <class Take>
  void for_each_held(DeliveryTag up_to, Take take) {
    for (std::size_t i = first_; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (up_to.value != 0 && entry.tag > up_to) break;
      if (entry.state == Entry::State::held) take(entry);
    }
  }
  DeliveryTag last_tag() const { return last_tag_; }

  void settle(Entry& entry);
  void enlist(Entry& entry);  // into the channel's transaction
  // Rollback: what is in the transaction is held again.
  void restore_transaction();
  // Commit: it is gone.
  void drop_transaction();
  // Drops settled entries; call after a run of settles.
  void compact();

  std::size_t live() const { return live_; }

 private:
  std::vector<Entry> entries_;
  std::size_t first_ = 0;  // entries before it are gone
  std::size_t gone_ = 0;   // gone entries at or after first_
  std::size_t live_ = 0;
  DeliveryTag last_tag_;
};

}  // namespace stoat::broker
