#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "broker/held_message.hpp"
#include "broker/home_limits.hpp"
#include "broker/persister.hpp"
#include "broker/position_table.hpp"
#include "broker/ring_buffer.hpp"
#include "broker/window_budget.hpp"
#include "store/store.hpp"

namespace stoat::broker {

// The messages of one stream of a queue that may be delivered, in the order of their positions:
//
//      returned            head window           disk range             tail
//   (came back, by       (in memory, in    [disk_first, disk_end):  (with the persister,
//    position)            order)            a count, no bodies       becoming disk range)
//
// A message that arrives goes to the head while nothing lies behind it and the window has room;
// otherwise it is put to the store and only numbers stay here. The head is filled again by reads
// of the disk range; a returned message whose body is on disk is read back when it is next.
//
// Owner: Queue. Thread: the home's worker.
// Invariants: head < disk range < tail by position, and nothing from the disk range on has ever
// been in the head or returned, so that whatever the store answers of it is ready, but for what a
// transaction still holds back; bodies held here are charged to the window share.
class ReadyMessages {
 public:
  struct Front {
    Sequence sequence;
    const HeldMessage* message = nullptr;
    explicit operator bool() const { return message != nullptr; }
  };
  struct Taken {
    Sequence sequence;
    HeldMessage message;
  };
  struct ReadRequest {
    Sequence from;
    store::ReadLimit limit;
  };
  // What a purge leaves to be settled in the store.
  struct Purged {
    std::uint64_t messages = 0;
    Sequence lowest;          // none lay below
    bool stored = false;      // some are in the store
    std::uint64_t count = 0;  // the durable ones of these
    std::uint64_t bytes = 0;
  };

  ReadyMessages(store::StreamId stream, Persister& persister, WindowShare& share,
                const HomeLimits& limits);

  // What the store had at start: all on disk. Messages up to `redelivered_to` may have been
  // delivered before.
  void recover(const store::RecoveredStream& found);

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  bool empty() const { return count_ == 0; }
  // No ready message lies below. REQUIRES: !empty().
  Sequence lowest() const;

  // Whether a message that arrives now stays in memory. Otherwise it is to be put to the store.
  bool stays_in_memory(std::uint32_t size) const;
  // An arriving message, above all others: with its body to the head (REQUIRES:
  // stays_in_memory()), without to the tail.
  void push_head(Sequence sequence, HeldMessage message);
  void push_tail(Sequence sequence, const HeldMessage& message);
  // Back to its position, from below the disk range. A body it holds is charged already.
  void give_back(Sequence sequence, HeldMessage message);
  // A message of a transaction, held back until now, takes its place: durable ones are on disk.
  void release(Sequence sequence, HeldMessage message);

  // The next message if its body is at hand. Good until the next change.
  Front front();
  // Takes it; the charge for its body passes to the caller. REQUIRES: front().
  Taken pop_front();

  // Puts were committed.
  void committed();
  // What to read from the store now, if anything; answered by loaded(). Positions from
  // `first_prepared` on are not read past: they are not ready yet.
  std::optional<ReadRequest> next_read(std::optional<Sequence> first_prepared);
  // Tells the answers to reads from before a purge apart.
  std::uint32_t read_generation() const { return read_generation_; }
  void loaded(store::ReadResult result);
  // The read that was asked for cannot be done. None is asked for again until try_again().
  void read_failed();
  bool unreadable() const { return unreadable_; }
  void try_again() { unreadable_ = false; }

  // Drops all; `next` is above every position given out.
  Purged purge(Sequence next);

 private:
  struct HeadMessage {
    Sequence sequence;
    HeldMessage message;
  };
  struct TailMessage {
    Sequence sequence;
    PutNumber put = kOnDisk;
    std::uint32_t size = 0;
    bool durable = false;
  };
  enum class Reading : std::uint8_t { nothing, disk_range, returned };

  bool returned_is_next() const {
    return !returned_.empty() && (head_.empty() || returned_.first() < head_.front().sequence);
  }
  void count_in(std::uint32_t size) {
    ++count_;
    bytes_ += size;
  }
  void append_head(Sequence sequence, HeldMessage message);
  void insert_tail(TailMessage message);
  void pull_tail();
  // Leaves the body to the persister or the disk.
  void spill(Sequence sequence, HeldMessage& message);
  // A read within what the window has room for.
  ReadRequest read_request(Sequence from, Sequence end, std::uint64_t bytes,
                           std::uint64_t messages) const;
  ReadRequest read_returned();
  std::optional<ReadRequest> read_disk_range(std::optional<Sequence> first_prepared);
  void load_returned(store::ReadResult& result);
  void load_disk_range(store::ReadResult& result);
  void forget_missing(Sequence sequence);
  void drop_put(PutNumber put, bool durable, std::uint32_t size, Purged& purged);

  const store::StreamId stream_;
  Persister& persister_;
  WindowShare& share_;
  const HomeLimits& limits_;

  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;

  PositionTable<HeldMessage> returned_;
  Sequence returned_loaded_to_;  // none above has a body that was read from disk
  RingBuffer<HeadMessage> head_;
  RingBuffer<TailMessage> tail_;
  Sequence passed_to_;  // above all that ever was in the head or returned

  Sequence disk_first_;
  Sequence disk_end_;
  std::uint64_t disk_count_ = 0;
  std::uint64_t disk_bytes_ = 0;
  std::uint64_t disk_durable_count_ = 0;
  std::uint64_t disk_durable_bytes_ = 0;
  Sequence redelivered_to_;

  Persister::BatchNumber watched_ = 0;
  ReadRequest read_;
  Reading reading_ = Reading::nothing;
  bool unreadable_ = false;  // the next one on disk
  std::uint32_t read_generation_ = 0;
};

}  // namespace stoat::broker
