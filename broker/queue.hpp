#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/id_map.hpp"
#include "broker/consumers.hpp"
#include "broker/home.hpp"
#include "broker/persister.hpp"
#include "broker/position_table.hpp"
#include "broker/ready_messages.hpp"
#include "broker/ring_buffer.hpp"
#include "broker/unacked.hpp"
#include "broker/window_budget.hpp"

namespace stoat::broker {

class Queue;

// What the queues of a home share.
struct QueueContext {
  Persister& persister;
  WindowBudget& budget;
  const HomeLimits& limits;
  // Asks the store; the answer comes to Queue::loaded() with the same generation.
  std::function<void(store::StreamId, std::uint32_t generation, const ReadyMessages::ReadRequest&)>
      read;

  // --- worked off at the end of the turn ---
  struct FinishedGet {
    std::function<void(Got)> done;
    Got got;
  };
  std::vector<Queue*> changed = {};  // to be dispatched
  std::vector<QueueId> unused = {};  // auto-delete queues whose last consumer left
  std::vector<FinishedGet> finished_gets = {};

  // --- totals since start ---
  std::uint64_t published = 0;
  std::uint64_t delivered = 0;
  std::uint64_t acked = 0;
};

// An AMQP queue: its messages on their way from ready to unacknowledged to settled, and its
// consumers.
//
// Owner: Home. Thread: its worker's.
// Invariants: a message is in exactly one of ready, unacked and prepared; no persistent message
// above the written delivered ceiling is delivered; every sequence the store may see is below a
// reserved number that it sees no later.
// Does not: know names, exchanges or sockets.
class Queue {
 public:
  Queue(const QueueSpec& spec, QueueContext& context);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void recover(const store::RecoveredStream& found);

  QueueId id() const { return id_; }
  bool durable() const { return durable_; }
  bool has_consumers() const { return !consumers_.empty(); }
  std::uint64_t ready_count() const { return ready_.count(); }
  QueueCounts counts() const;
  QueueStats stats() const;
  store::QueueNumbers exact_numbers() const;

  // --- publishing ---
  // `confirm`: the answer that its tag's puts share; opened here when there is something to wait
  // for.
  void publish(Publish& publish, Outbox& publisher, Persister::ConfirmSlot& confirm);

  // --- consuming ---
  ConsumeResult consume(const ConsumerSpec& spec, Outbox& outbox);
  // What it took stays unacknowledged.
  void cancel(Consumer& consumer);
  void pause(Consumer& consumer, bool paused);
  void set_channel_limited(Consumer& consumer, bool limited);
  void add_lease(Consumer& consumer, std::uint32_t count);
  // Its credit may have changed for the better.
  void reconsider(Consumer& consumer);
  // nullopt: the disk has to be read; `done` is called at the end of a later turn.
  std::optional<Got> get(std::function<void(Got)>& done);
  void settle(const Settle& settle);

  // Hands out what consumers have credit for, and reads ahead. Called at the end of the turn after
  // something changed.
  void dispatch();

  // --- from the store ---
  void puts_committed();
  void numbers_written(const store::QueueNumbers& numbers);
  void loaded(std::uint32_t generation, store::ReadResult result);
  // What lies on disk next cannot be read. Once all before it is handed out, consumers are
  // cancelled and gets refused; whoever asks anew causes another try.
  void read_failed(std::uint32_t generation);

  // --- maintenance ---
  // Drops what is ready; answers how many.
  std::uint64_t purge();
  // Drops everything and ends consumers and waiting gets; answers how many were ready.
  std::uint64_t remove(std::optional<ConnectionId> except_connection);

  // --- transactions ---
  // Both append what must be durable to `batch`. prepare_settle: true when one of the messages is
  // still on its way to the store, which has to see its put first.
  Sequence prepare_publish(MessagePtr message, store::Batch& batch);
  bool prepare_settle(const Settle& settle, store::Batch& batch);
  void release_publish(Sequence sequence);
  void release_settle(const Settle& settle);

 private:
  class SettledRun;

  store::StreamId stream() const { return {id_, 0}; }
  void mark_changed();
  Sequence next_sequence();
  void write_numbers();
  void extend_ceiling(Sequence sequence);
  ReadyMessages::Front deliverable_front();
  Consumer* consumer_for(Sequence sequence);
  void deliver(Consumer& consumer);
  MessagePtr hold(Sequence sequence, HeldMessage& message);
  void count_delivery(Sequence sequence, bool durable, bool redelivered);
  Got take_for_get();
  void serve_gets();
  void end_waiting_for_unreadable();
  void read_ahead();
  void give_back(Sequence sequence, UnackedMessage& entry, SettleKind kind);
  bool finish(UnackedMessage& entry);
  void leave(UnackedMessage& entry);
  void settle_gaps(const ReadyMessages::Purged& purged);

  QueueContext& context_;
  const QueueId id_;
  const bool durable_;
  const bool auto_delete_;
  bool dying_ = false;    // its last consumer left; nobody may consume any more
  bool changed_ = false;  // waits for dispatch

  WindowShare share_;
  ReadyMessages ready_;
  Unacked unacked_;
  PositionTable<MessagePtr> prepared_;
  Consumers consumers_;
  RingBuffer<std::function<void(Got)>> gets_;
  // Ready messages that a consumer asked to have again.
  struct Taker {
    ConnectionId connection;
    ConsumerId consumer;
  };
  IdMap<Sequence, Taker> takers_;

  // --- numbers; see store::QueueNumbers ---
  Sequence next_{1};
  Sequence reserved_;  // asked for
  std::uint64_t reserve_step_ = 0;
  Sequence highest_delivered_;
  Sequence ceiling_asked_;
  Sequence ceiling_written_;
  std::uint64_t ceiling_step_ = 0;
  Persister::Cursor numbers_cursor_;
  Persister::Cursor settle_cursor_;

  std::uint64_t published_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t redelivered_ = 0;
};

}  // namespace stoat::broker
