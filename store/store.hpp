#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"

// What survives. Opaque bytes in and out; knows neither AMQP nor its engine. The durability
// contract is this interface's: when a completion of a batch with sync answers no error, the batch
// survives power loss.

namespace stoat::store {

// One ordered sequence of messages of a queue. A plain queue has stream 0 only. The first message's
// sequence is 1. Every sequence given out must be settled some day, also one whose message was
// never put, or what is settled above it cannot be summed up as "everything below".
struct StreamId {
  QueueId queue;
  std::uint8_t stream = 0;
  friend bool operator==(const StreamId&, const StreamId&) = default;
};

struct StoreError {
  std::string text;  // for the log: what failed, on which file
};

// A message to keep. `bytes` is owned by the submitter and must stay valid, and where they are,
// until the batch's completion has run: large ones that several puts have at the same address are
// written once for all of them.
struct Put {
  StreamId stream;
  Sequence sequence;
  std::string_view bytes;
  // Kept in memory-backed storage that is emptied at every start and never synced: a transient
  // message that memory has no room for.
  bool transient = false;
};

// Messages first..last (inclusive) are dead: settled, purged or expired. `count` and `bytes` are
// what of them was stored and alive, durable and not transient; they keep the queue's record exact.
struct Settle {
  StreamId stream;
  Sequence first;
  Sequence last;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// Numbers of a queue that are persisted ahead of their use. They only grow: a smaller one than the
// store holds, 0 among them, changes nothing.
struct QueueNumbers {
  StreamId stream;
  // Every sequence given out is below this.
  Sequence reserved_next;
  // Every message delivered to anyone is at or below this; 0 when none was.
  Sequence delivered_ceiling;
};

struct Batch {
  std::vector<Put> puts;
  std::vector<Settle> settles;
  std::vector<QueueNumbers> numbers;
  // Completion only after fdatasync. Without it the completion comes once the operating system has
  // the bytes: that much survives a kill, not a power loss.
  bool sync = false;
};

// The definitions: readable JSON documents under string keys ("vhost//", "queue///orders"), changed
// several at a time, all or none. Always synced.
struct TopologyChange {
  std::vector<std::pair<std::string, std::string>> puts;
  std::vector<std::string> erases;
  // Queues whose messages will be put from now on, and queues whose messages go (their space is
  // given back in the background; a deleted id is never used again).
  std::vector<QueueId> created_queues;
  std::vector<QueueId> deleted_queues;
};

// One stream as found at start.
struct RecoveredStream {
  StreamId stream;
  Sequence first_unsettled;  // nothing alive lies below
  Sequence next;             // above everything ever given out
  Sequence delivered_ceiling;
  std::uint64_t count = 0;  // alive
  std::uint64_t bytes = 0;  // alive, as stored
};

struct Recovered {
  std::vector<std::pair<std::string, std::string>> topology;
  std::vector<RecoveredStream> streams;
  // The last stop was clean: delivered ceilings are exact. Otherwise they were persisted ahead.
  bool clean = true;
  // Above every queue id ever used.
  QueueId next_queue_id;
};

struct StoredMessage {
  Sequence sequence;
  std::string bytes;
  bool transient = false;
};

struct ReadResult {
  std::vector<StoredMessage> messages;  // alive, in order
  // Where the next read continues: everything alive below it has been answered.
  Sequence resume_from;
  // Nothing alive lies between resume_from and the end of the range asked for.
  bool end = false;
  std::optional<StoreError> error;
};

struct ReadLimit {
  Sequence end;  // exclusive
  std::size_t max_messages = 256;
  std::size_t max_bytes = 1 << 20;  // at least one message is answered, however large
};

struct StoreStats {
  std::uint64_t groups = 0;  // groups written
  std::uint64_t syncs = 0;
  std::uint64_t puts = 0;
  std::uint64_t put_bytes = 0;
  std::uint64_t wal_bytes_live = 0;
  std::uint64_t last_sync_us = 0;
  std::uint64_t queues_being_freed = 0;  // deleted, but not all of their space is given back yet
};

// Owner: broker::Server, one. Thread: any; submit, save_topology and read only queue work and
// never wait for the disk. Completions run on a thread of the store's and must only post.
// Batches of one submitting thread are applied in the order submitted, a topology change included.
// After the first failed write or sync nothing succeeds any more: every completion, also of what
// was queued, gets that error, and on_failure (set at open) has been called once.
class Store {
 public:
  using Completion = std::function<void(const std::optional<StoreError>&)>;
  using ReadCompletion = std::function<void(ReadResult)>;

  virtual ~Store() = default;

  // Blocking, once, before anything else. Throws StoreOpenError (store/open.hpp) where the data is
  // damaged.
  virtual Recovered recover() = 0;

  virtual void submit(Batch batch, Completion done) = 0;
  virtual void save_topology(TopologyChange change, Completion done) = 0;

  // Alive messages of a stream from `from` on, in order, both durable and transient ones. What a
  // submitted batch changes is seen once its completion ran. A missing key is a settled message,
  // never an error.
  virtual void read(StreamId stream, Sequence from, ReadLimit limit, ReadCompletion done) = 0;

  // Writes exact numbers, flushes, marks the folder clean. Blocking; nothing may be submitted
  // after.
  virtual void close(std::span<const QueueNumbers> exact_numbers) = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace stoat::store
