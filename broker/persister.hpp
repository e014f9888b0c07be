#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "broker/held_message.hpp"
#include "broker/home_limits.hpp"
#include "broker/outboxes.hpp"
#include "store/store.hpp"

namespace stoat::broker {

// Collects what a home has for the store while the previous batch is being written, and answers
// confirms and publishers' credit when it is. One batch is in flight at a time; it ends when the
// store says so, and the next goes out in the same turn.
//
// A message settled for good while its put still waits is never written: its publisher is answered
// at once. Settled ranges that need no mark of their own (nothing of them was written) ride along
// with the next batch; they keep the store's settled positions free of holes.
//
// Owner: Home. Thread: its worker's.
// Invariants: put numbers rise without gaps and commit in order; a confirm is answered exactly
// once, when the last put of its tag is committed or dropped; a settle is never submitted before
// the put it ends; numbers are in no later batch than the sequences they cover. Does not: know
// queues, but as ids to be told of.
class Persister {
 public:
  using BatchNumber = std::uint64_t;
  // Hands a batch to the store; completed() is called later with the same number, in order.
  using Submit = std::function<void(BatchNumber, store::Batch)>;

  // One tag's answer, while its message is being put; several puts may share it.
  using ConfirmSlot = std::uint32_t;
  static constexpr ConfirmSlot kNoConfirm = std::numeric_limits<ConfirmSlot>::max();
  // Puts that no publisher waits for.
  static constexpr ConnectionId kNobody{std::numeric_limits<std::uint64_t>::max()};

  // Where a queue's last settled range (or its numbers) stands among what waits, so that the next
  // one is merged without a search.
  struct Cursor {
    std::uint64_t round = 0;
    std::uint32_t index = 0;
  };

  Persister(Outboxes& outboxes, const HomeLimits& limits, Submit submit);

  // --- puts ---
  // Valid until seal_if_full(): the puts of one tag travel in one batch.
  ConfirmSlot open_confirm(ConnectionId connection, ChannelRef channel, PublishTag tag);
  // `transient`: spilled, not kept over a restart.
  PutNumber put(store::StreamId stream, Sequence sequence, MessagePtr message, bool transient,
                ConnectionId publisher, ConfirmSlot confirm);
  // The message is settled for good: true when it was still waiting, and is now never written.
  bool drop(PutNumber number);
  bool committed(PutNumber number) const { return number < batches_.front().first; }
  bool submitted(PutNumber number) const { return number < first_waiting_; }
  // The body of a message whose put is not committed. REQUIRES: not dropped.
  const MessagePtr& body(PutNumber number);
  // completed() names the queue once everything put so far is committed. `watched` is the batch it
  // watches already, kept by the queue.
  void watch(QueueId queue, BatchNumber& watched);
  // Closes the collecting batch when it has its bytes. Called between tags.
  void seal_if_full();

  // --- settles and numbers ---
  // first..last are dead. `count` and `bytes`: what of them was stored and durable; `stored`: some
  // of them are in the store, so that this has to be written.
  void settle(Cursor& cursor, store::StreamId stream, Sequence first, Sequence last,
              std::uint64_t count, std::uint64_t bytes, bool stored);
  void numbers(Cursor& cursor, const store::QueueNumbers& numbers);
  bool has_numbers() const { return !numbers_.empty(); }
  // The queue is gone: what waits for it besides its puts (which the queue drops) is forgotten.
  void forget_queue(QueueId queue);

  // --- to the store and back ---
  void submit_if_idle();
  // Hands over all that waits, whatever is in flight: a transaction that settles one of these
  // messages must reach the store behind its put.
  void submit_everything();
  // Numbers and watchers of the batch; the spans are good until the next call. `failed`: the store
  // takes no more, nothing is answered from now on.
  struct Completed {
    std::span<const QueueId> watchers;
    std::span<const store::QueueNumbers> numbers;
  };
  Completed completed(BatchNumber batch, bool failed);
  bool idle() const { return in_flight_ == 0 && !has_work(); }
  // Before a stop: also what was waiting to ride along.
  void write_ranges_alone() { ranges_needed_ = ranges_needed_ || !ranges_.empty(); }

  std::uint64_t puts_written() const { return puts_written_; }
  std::uint64_t puts_dropped() const { return puts_dropped_; }

 private:
  struct PendingPut {
    MessagePtr message;  // null: dropped
    QueueId queue;
    Sequence sequence;
    ConnectionId publisher;
    ConfirmSlot confirm = kNoConfirm;
    std::uint8_t stream = 0;
    bool transient = false;
  };
  struct PendingConfirm {
    ConnectionId connection;
    ChannelRef channel;
    std::uint32_t puts_left = 0;
    PublishTag tag;
  };
  struct Batch {
    PutNumber first = 1;  // number of puts[0]
    std::vector<PendingPut> puts;
    std::vector<PendingConfirm> confirms;
    std::vector<QueueId> watchers;
    std::vector<store::QueueNumbers> numbers;
    std::size_t alive = 0;  // puts not dropped
    std::size_t bytes = 0;  // of these
  };

  Batch& batch_of(PutNumber number);
  void open_batch();
  bool has_work() const;
  void submit_next();
  void take_ranges(store::Batch& out);
  void merge_ranges();
  void answer_puts(const Batch& batch);
  void clear_dropped();

  Outboxes& outboxes_;
  const HomeLimits& limits_;
  const Submit submit_;

  // In flight, sealed, collecting: the last one always stands, and collects.
  std::deque<Batch> batches_;
  std::size_t in_flight_ = 0;
  BatchNumber first_batch_ = 1;  // number of batches_[0]
  PutNumber next_put_ = 1;
  PutNumber first_waiting_ = 1;  // puts before it are submitted
  Batch spare_;                  // whose vectors have grown already
  Batch done_;                   // what completed() answered last

  std::vector<store::Settle> ranges_;
  std::vector<store::QueueNumbers> numbers_;
  std::uint64_t round_ = 1;  // rises when ranges_ is taken or reordered
  std::uint64_t numbers_round_ = 1;
  bool ranges_needed_ = false;

  bool failed_ = false;
  std::uint64_t puts_written_ = 0;
  std::uint64_t puts_dropped_ = 0;
};

}  // namespace stoat::broker
