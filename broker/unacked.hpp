#pragma once

#include <cstdint>
#include <utility>

#include "base/ids.hpp"
#include "broker/held_message.hpp"
#include "broker/position_table.hpp"
#include "broker/window_budget.hpp"

namespace stoat::broker {

struct Consumer;

struct UnackedMessage {
  HeldMessage message;
  Consumer* consumer = nullptr;  // null: basic.get
  bool in_transaction = false;   // settled by one that is not committed yet
};

// What one stream of a queue delivered and nobody has settled yet, by position. Only those have a
// body that neither the persister nor the disk has.
//
// Owner: Queue. Thread: the home's worker.
class Unacked {
 public:
  std::uint64_t count() const { return entries_.size(); }
  // What the bodies held here cost.
  std::size_t memory_bytes() const { return memory_bytes_; }

  void add(Sequence at, UnackedMessage entry) {
    if (entry.message.body != nullptr) memory_bytes_ += WindowShare::cost(entry.message.size);
    entries_.insert(at, std::move(entry));
  }

  // Takes out those of first..last (inclusive) that are held and in no transaction, in order:
  // taken(sequence, UnackedMessage&&).
  template <class Taken>
  void take_range(Sequence first, Sequence last, Taken taken) {
    take(first, last, false, taken);
  }

  // A transaction settles first..last: nothing else can from now on. hold(sequence, entry).
  template <class Hold>
  void hold_range(Sequence first, Sequence last, Hold hold) {
    entries_.for_each(first, [&](Sequence at, UnackedMessage& entry) {
      if (at > last) return false;
      if (!std::exchange(entry.in_transaction, true)) hold(at, entry);
      return true;
    });
  }
  // Its end: takes out those that hold_range() held.
  template <class Taken>
  void take_held_range(Sequence first, Sequence last, Taken taken) {
    take(first, last, true, taken);
  }

  template <class Visit>
  void for_each(Sequence from, Visit visit) const {
    entries_.for_each(from, visit);
  }

 private:
  template <class Taken>
  void take(Sequence first, Sequence last, bool in_transaction, Taken& taken) {
    entries_.take_range(
        first, last,
        [=](const UnackedMessage& entry) { return entry.in_transaction != in_transaction; },
        [&](Sequence at, UnackedMessage&& entry) {
          if (entry.message.body != nullptr) memory_bytes_ -= WindowShare::cost(entry.message.size);
          taken(at, std::move(entry));
        });
  }

  PositionTable<UnackedMessage> entries_;
  std::size_t memory_bytes_ = 0;
};

}  // namespace stoat::broker
