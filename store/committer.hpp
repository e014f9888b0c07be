#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "store/database.hpp"
#include "store/failure_latch.hpp"
#include "store/group_builder.hpp"
#include "store/submission.hpp"

namespace stoat::store {

// Group commit. One thread takes all that waits as a group, up to max_group_bytes, writes it with
// one write and at most one sync, and runs the completions in the order of submission; meanwhile
// the next group gathers. Nothing waits for a timer: with nothing under way a submission is written
// at once.
//
// Owner: RocksStore. Thread: submit from any, and only queues; everything else on its own.
// Invariants: once the latch is closed no completion comes without its error.
class Committer {
 public:
  using OnPublished = std::function<void(UnsyncedMarks::Published)>;

  // on_published runs on the committer's thread when marks have become known to the flush filter.
  Committer(Database& database, GroupBuilder& builder, FailureLatch& latch,
            std::size_t max_group_bytes, OnPublished on_published);
  ~Committer();

  void submit(Submission submission);
  // Writes all that was submitted, then ends the thread. Afterwards completions of what is
  // submitted run at once, with an error.
  void finish();
  // As a crash would: what is under way is written, what waits gets an error.
  void abandon();

  // Of StoreStats, all but wal_bytes_live.
  StoreStats stats() const;

 private:
  enum class Ending { none, finish, abandon };

  void run();
  // False: the end.
  bool gather();
  void end(Ending ending);
  std::size_t take_group();
  void commit(std::span<Submission> group);
  std::optional<StoreError> write();
  rocksdb::Status write_durable();
  void count();
  static void complete(Submission& submission, const std::optional<StoreError>& error);

  Database& database_;
  GroupBuilder& builder_;
  FailureLatch& latch_;
  const std::size_t max_group_bytes_;
  const OnPublished on_published_;

  std::mutex mutex_;  // guards incoming_, sleeping_ and ending_
  std::condition_variable wake_;
  std::vector<Submission> incoming_;
  bool sleeping_ = false;
  Ending ending_ = Ending::none;

  // The thread's own: what was taken from incoming_ and is not committed yet.
  std::vector<Submission> taken_;
  std::size_t next_ = 0;  // in taken_

  std::atomic<std::uint64_t> groups_ = 0;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<std::uint64_t> puts_ = 0;
  std::atomic<std::uint64_t> put_bytes_ = 0;
  std::atomic<std::uint64_t> last_sync_us_ = 0;

  std::thread thread_;  // last: starts when everything above stands
};

}  // namespace stoat::store
