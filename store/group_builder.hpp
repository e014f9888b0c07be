#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rocksdb/write_batch.h"
#include "store/database.hpp"
#include "store/recovery.hpp"
#include "store/settled_set.hpp"
#include "store/shared_body.hpp"
#include "store/stream_table.hpp"
#include "store/submission.hpp"
#include "store/unsynced_marks.hpp"

namespace stoat::store {

// Turns a group of submissions into what is written: one atomic batch for the log, and one past the
// log for transient messages.
//
// Because a group is atomic, a message that is put and settled by the same group need not be
// written at all, in whatever order the two were submitted; with a fast consumer that is most of
// them. Each stream's record, as it stands after the group, goes into the same batch, so that
// counts hold at whatever group a crash leaves.
//
// A large message that a group puts into several streams is written once, as a body that each of
// them refers to. That it is the same one shows by its address: the submitter's bytes stay where
// they are until the group is complete.
//
// Owner: Committer. Thread: the committer; alive_bytes for any.
class GroupBuilder {
 public:
  // Messages of more bytes than this are shared. Below, a copy costs less than a reference's
  // second key and its look-up.
  static constexpr std::size_t kMaxUnsharedBytes = 4u << 10;

  GroupBuilder(const Database& database, StreamTable& streams, const RecoveryResult& recovered);

  // The batches are valid until the next build.
  void build(std::span<const Submission> group);
  rocksdb::WriteBatch& durable() { return durable_; }
  rocksdb::WriteBatch& transient() { return transient_; }
  bool sync() const { return sync_; }
  std::uint64_t puts() const { return puts_; }
  std::uint64_t put_bytes() const { return put_bytes_; }

  // The group has been written, log_number being written to now, and synced if sync() asked for it:
  // then the marks that were due are known to the flush filter now.
  UnsyncedMarks::Published written(std::uint64_t log_number);

  // Of durable messages, as stored.
  std::uint64_t alive_bytes() const { return alive_bytes_.load(std::memory_order_relaxed); }
  // An idle store keeps no large buffers.
  void release_memory();

 private:
  using Stream = std::shared_ptr<StreamState>;

  void begin();
  void apply(const TopologyChange& change);
  void apply(const ForgetQueues& forget);
  void apply(const ExactNumbers& exact);
  void apply(const SetClean& set);
  void apply(const Batch& batch) { apply_settles(batch); }
  void apply_settles(const Batch& batch);
  void apply_numbers(const QueueNumbers& numbers);
  void create_queue(QueueId queue);
  void delete_queue(QueueId queue);
  // True: at least one message has to be on the disk.
  bool encode_puts(const Batch& batch);
  void encode_large();
  void encode_body(std::span<const Put> users);
  void encode_records();
  void encode_stream(StreamState& stream);

  // The stream of that id, made when it is new; null when its queue was deleted.
  StreamState* stream(StreamId id);
  void make_persistent(StreamState& stream);
  void touch(StreamState& stream);

  const Database& database_;
  StreamTable& streams_;

  rocksdb::WriteBatch durable_;
  rocksdb::WriteBatch transient_;
  bool sync_ = false;
  std::uint64_t puts_ = 0;
  std::uint64_t put_bytes_ = 0;
  std::vector<Stream> touched_;
  std::vector<Put> large_;  // alive, durable ones that may be shared
  std::vector<BodyUser> users_;
  std::string users_bytes_;
  BodyId next_body_id_;

  GroupMark mark_;
  std::uint64_t log_number_ = 0;  // after the last write
  UnsyncedMarks unsynced_;
  QueueId next_queue_id_;
  bool next_queue_id_changed_ = false;
  SettledSet deleted_queues_{SettledSet::Tracking::none};  // of this process's life
  std::atomic<std::uint64_t> alive_bytes_;
  Stream last_stream_;  // most batches are of one queue
};

}  // namespace stoat::store
