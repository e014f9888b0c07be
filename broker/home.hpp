#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "broker/home_limits.hpp"
#include "broker/traffic.hpp"
#include "store/store.hpp"
#include "wire/field_value.hpp"

namespace stoat::broker {

// What a queue is, fixed at declare.
struct QueueSpec {
  QueueId id;
  std::string vhost;
  std::string name;
  bool durable = false;
  bool exclusive = false;
  bool auto_delete = false;
  wire::Table arguments;
};

struct ConsumerSpec {
  ConnectionId connection;
  WorkerIndex connection_worker;
  ChannelRef channel;
  ConsumerId id;  // unique on its connection
  std::string tag;
  bool no_ack = false;
  bool exclusive = false;
  std::int32_t priority = 0;
  std::uint16_t prefetch = 0;    // 0: unlimited
  bool channel_limited = false;  // each delivery also needs a lease from the channel
  bool paused = false;           // channel.flow(active=false) holds on the channel
};

enum class ConsumeResult {
  ok,
  no_queue,          // gone, or going: 404
  exclusive_in_use,  // 403
};

struct Got {
  MessagePtr message;  // nullptr: the queue is empty (or gone)
  Position position;
  bool redelivered = false;
  std::uint64_t messages_left = 0;  // ready ones
  bool queue_gone = false;
  bool unreadable = false;  // the next message is on disk and cannot be read
};

struct QueueCounts {
  std::uint64_t ready = 0;
  std::uint64_t unacked = 0;
  std::uint64_t consumers = 0;
  bool exists = false;
};

// Plain figures for the admin door.
struct QueueStats {
  QueueId id;
  std::uint64_t ready = 0;
  std::uint64_t unacked = 0;
  std::uint64_t consumers = 0;
  std::uint64_t ready_bytes = 0;
  std::uint64_t memory_bytes = 0;  // bodies held in memory
  std::uint64_t published = 0;     // totals since start
  std::uint64_t delivered = 0;
  std::uint64_t acked = 0;
  std::uint64_t redelivered = 0;
};

struct HomeStats {
  std::uint64_t queues = 0;
  std::uint64_t ready = 0;
  std::uint64_t unacked = 0;
  std::uint64_t consumers = 0;
  std::uint64_t published = 0;
  std::uint64_t delivered = 0;
  std::uint64_t acked = 0;
  std::uint64_t puts_written = 0;
  std::uint64_t puts_elided = 0;  // acked before their group was taken
};

// What a transaction changes at one home.
struct TxPublish {
  QueueId queue;
  MessagePtr message;
};
struct TxWork {
  std::vector<TxPublish> publishes;
  std::vector<Settle> settles;
};

// The queues that live on one worker, with what they share: the outboxes towards connections, the
// persister towards the store, the memory budget of their windows.
//
// Owner: Worker, one. Thread: the worker's only; every call and every callback runs there.
// Invariants: a message that was taken is in exactly one place (ready, unacked, prepared) until it
// is settled; nothing is staged for a connection beyond kDeliveryWindowBytes that its socket has
// not taken (one message may overdraw it).
// Does not: own sockets, know names (queues are ids here), check permissions.
class Home {
 public:
  struct Hooks {
    // Runs `fn` on the worker's thread later, with an end_turn() behind it; called from the store's
    // threads.
    std::function<void(std::function<void()>)> post;
    // Takes what is staged for a connection; called from end_turn() and cancel() only. The vector
    // contents may be moved from.
    std::function<void(ConnectionId, WorkerIndex, ToConnection&)> deliver;
    // The last consumer of an auto-delete queue left: the queue refuses consumers from now on and
    // is to be deleted. Called from end_turn() only.
    std::function<void(QueueId)> unused;
    // A queue's messages on disk cannot be read; what was said of it. Its consumers are being
    // cancelled. May be empty.
    std::function<void(QueueId, const std::string&)> unreadable = {};
  };

  Home(WorkerIndex index, store::Store& store, const Clock& clock, Hooks hooks,
       HomeLimits limits = {});
  ~Home();
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // --- life of a queue; called on behalf of the control owner ---
  // `recovered` when it comes from the store; `clean` false: all at or below the delivered ceiling
  // is redelivered.
  void create_queue(QueueSpec spec, const store::RecoveredStream* recovered, bool clean);
  // if_unused / if_empty are checked here, where the truth is. From `ok` on the queue is gone:
  // consumers get ConsumerCancelled, pending confirms are answered with ack, later batches to it
  // are dropped and count as taken. `messages` is what was ready.
  enum class DeleteResult { ok, no_queue, in_use, not_empty };
  struct Deleted {
    DeleteResult result = DeleteResult::ok;
    std::uint64_t messages = 0;
  };
  // `except_connection`: no ConsumerCancelled for consumers of this connection (it is going away).
  Deleted delete_queue(QueueId id, bool if_unused, bool if_empty,
                       std::optional<ConnectionId> except_connection = {});

  // --- methods ---
  ConsumeResult consume(QueueId queue, ConsumerSpec spec);
  // What was staged for the consumer is delivered before this returns (deliver hook): cancel-ok may
  // follow at once. Unacknowledged messages stay with the channel. false when there is none.
  bool cancel(QueueId queue, ConnectionId connection, ConsumerId consumer);
  // channel.flow: pauses or resumes a consumer.
  void pause(QueueId queue, ConnectionId connection, ConsumerId consumer, bool paused);
  // A new channel-wide prefetch: the consumer needs leases from now on, or no longer.
  void set_channel_limited(QueueId queue, ConnectionId connection, ConsumerId consumer,
                           bool limited);
  // basic.get. `done` runs before this returns when the head is in memory, else after a disk read.
  // With no_ack the message stays held until a Settle{sent} arrives for it.
  void get(QueueId queue, std::function<void(Got)> done);
  // Ready messages are dropped, what is unacknowledged stays. Answers how many; nullopt: no queue.
  std::optional<std::uint64_t> purge(QueueId queue);
  QueueCounts counts(QueueId queue) const;

  // --- the data path ---
  // One read's worth from one connection; takes the contents. Effects are staged until end_turn().
  void take(ConnectionId connection, WorkerIndex connection_worker, ToHome& batch);
  // Dispatches queues that changed, hands staged outboxes on, submits to the store if it is idle.
  // Called once after each read, mailbox batch or store completion.
  void end_turn();
  // Everything of this connection is over: forget its outbox. Its consumers must have been
  // cancelled and its deliveries settled in batches before.
  void forget_connection(ConnectionId connection);

  // --- transactions: prepare at every home, one store batch, then release at every home ---
  using TxId = std::uint64_t;
  // Messages take their sequences and are held back; settles are held to be final. What must be
  // durable is appended to `batch`; the home keeps its bytes alive until release.
  TxId prepare(ConnectionId connection, TxWork work, store::Batch& batch);
  // After the batch's completion: the messages become ready, the settles take effect.
  void release(TxId id);

  // --- stop: waits until everything taken is with the store, then runs `done` ---
  void drain(std::function<void()> done);
  std::vector<store::QueueNumbers> exact_numbers() const;

  std::vector<QueueStats> queue_stats(QueueId after, std::size_t limit) const;  // by id, in slices
  std::optional<QueueStats> queue_stats(QueueId id) const;
  HomeStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoat::broker
