#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "store/key_layout.hpp"
#include "store/settled_set.hpp"

namespace stoat::store {

// A stretch of positions of which all are settled or none is.
struct SettledRun {
  bool settled = false;
  Sequence end;  // exclusive
};

// One stream while the store is open. Its settled positions are held twice: `live` runs with the
// group being written and is what reads go by; `synced` holds only what is known to be on the disk,
// and is what the flush filter goes by. A message dropped from the tables on the word of a mark
// that a power cut then forgets would be missing, but still counted.
//
// Owner: StreamTable, and for a moment whoever found it there.
// Thread: the plain members belong to the committer; the rest is for any.
class StreamState {
 public:
  StreamState(StreamId stream_id, Sequence next) : id(stream_id), recovered_next(next) {}

  const StreamId id;
  // What lies below was given out before this start: what is not stored there never will be.
  const Sequence recovered_next;

  StreamRecord record;          // but for its watermark, which is live()'s
  bool record_changed = false;  // by the group at hand
  bool persistent = false;      // has keys on disk: not so while only transient messages were put
  std::atomic<bool> deleted = false;
  Sequence reclaimed_to;  // the reclaimer's: below it no table is left that could be dropped whole

  // The highest transient message put since the start, 0 when none was.
  std::atomic<std::uint64_t> last_transient = 0;

  void settle(Sequence first, Sequence last);
  void publish(Sequence first, Sequence last);

  bool is_settled(Sequence position) const;
  SettledRun live_run_at(Sequence position) const;
  SettledRun synced_run_at(Sequence position) const;
  Sequence synced_watermark() const;

  // The committer's, and recovery's before it: chunks to rewrite, see SettledSet.
  const SettledSet& live() const { return live_; }
  SettledSet::Changes take_changes();

  // At start, what was persisted is on the disk. False: the bytes are no chunk.
  void restore_watermark(Sequence watermark);
  bool restore_chunk(std::uint64_t index, std::string_view encoded);

 private:
  mutable std::mutex mutex_;  // guards both sets; their only writer, the committer, reads without
  SettledSet live_;
  SettledSet synced_{SettledSet::Tracking::none};
};

// All streams the store knows of, by queue.
//
// Owner: RocksStore. Thread: any may find; only the committer, and recovery before it starts,
// change.
class StreamTable {
 public:
  enum class Fate { unknown, alive, deleted };
  struct Found {
    Fate fate = Fate::unknown;
    std::shared_ptr<StreamState> stream;  // null unless alive and the stream exists
  };

  Found find(StreamId id) const;
  std::vector<std::shared_ptr<StreamState>> streams_of(QueueId queue) const;
  std::vector<std::shared_ptr<StreamState>> all() const;

  // Recovery is done: a queue that is unknown from here on does not exist any more.
  void set_complete() { complete_ = true; }
  bool complete() const { return complete_; }

  bool knows(QueueId queue) const;
  void add_queue(QueueId queue);
  std::shared_ptr<StreamState> add_stream(StreamId id, Sequence recovered_next);
  // From here on the flush filter drops whatever is left of this queue.
  void mark_deleted(QueueId queue);
  void forget(QueueId queue);

 private:
  struct Queue {
    bool deleted = false;
    std::vector<std::shared_ptr<StreamState>> streams;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<QueueId, Queue> queues_;
  std::atomic<bool> complete_ = false;
};

}  // namespace stoat::store
