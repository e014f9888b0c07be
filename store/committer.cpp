#include "store/committer.hpp"

#include <chrono>
#include <iterator>
#include <utility>

#include "base/thread_name.hpp"

#include "store/error_text.hpp"

namespace stoat::store {
namespace {

const StoreError kClosed{"the store is closed"};

}  // namespace

Committer::Committer(Database& database, GroupBuilder& builder, FailureLatch& latch,
                     std::size_t max_group_bytes, OnPublished on_published)
    : database_(database),
      builder_(builder),
      latch_(latch),
      max_group_bytes_(max_group_bytes),
      on_published_(std::move(on_published)),
      thread_([this] { run(); }) {}

Committer::~Committer() {
  abandon();
}

void Committer::submit(Submission submission) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (ending_ == Ending::none) {
      incoming_.push_back(std::move(submission));
      wake = std::exchange(sleeping_, false);
    } else {
      complete(submission, kClosed);
    }
  }
  if (wake) wake_.notify_one();
}

void Committer::finish() {
  end(Ending::finish);
}
void Committer::abandon() {
  end(Ending::abandon);
}

void Committer::end(Ending ending) {
  {
    std::lock_guard lock(mutex_);
    if (ending_ == Ending::none) ending_ = ending;
    sleeping_ = false;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Committer::run() {
  name_this_thread("store-committer");
  while (gather()) {
    const std::size_t size = take_group();
    commit({taken_.data() + next_, size});
    next_ += size;
    if (next_ == taken_.size()) {
      taken_.clear();
      next_ = 0;
    }
  }
}

bool Committer::gather() {
  std::unique_lock lock(mutex_);
  if (incoming_.empty() && taken_.empty() && ending_ == Ending::none) {
    builder_.release_memory();
    std::vector<Submission>().swap(taken_);
    while (incoming_.empty() && ending_ == Ending::none) {
      sleeping_ = true;
      wake_.wait(lock);
    }
  }
  if (taken_.empty()) {
    taken_.swap(incoming_);
  } else {
    std::move(incoming_.begin(), incoming_.end(), std::back_inserter(taken_));
    incoming_.clear();
  }
  if (ending_ == Ending::abandon) {
    lock.unlock();
    for (std::size_t i = next_; i < taken_.size(); ++i) complete(taken_[i], kClosed);
    return false;
  }
  return !taken_.empty();
}

// How many submissions, from next_ on, make up the group: at least one, whatever its size.
std::size_t Committer::take_group() {
  std::size_t bytes = 0;
  std::size_t end = next_;
  do {
    bytes += taken_[end].bytes();
    ++end;
  } while (end < taken_.size() && bytes < max_group_bytes_);
  return end - next_;
}

void Committer::commit(std::span<Submission> group) {
  std::optional<StoreError> error = latch_.error();
  if (!error) {
    builder_.build(group);
    error = write();
  }
  if (!error) {
    count();
    auto published = builder_.written(database_.log_number());
    if (on_published_) on_published_(std::move(published));
  }
  for (Submission& submission : group) complete(submission, error);
}

std::optional<StoreError> Committer::write() {
  rocksdb::Status status;
  if (builder_.transient().Count() > 0) {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    status = database_.db().Write(options, &builder_.transient());
  }
  if (status.ok()) status = write_durable();
  if (!status.ok()) latch_.close("cannot write to " + database_.dir() + ": " + error_text(status));
  // Also when RocksDB itself failed in the background meanwhile: what it took may not be kept.
  return latch_.error();
}

rocksdb::Status Committer::write_durable() {
  const auto begin = std::chrono::steady_clock::now();
  rocksdb::Status status;
  if (builder_.durable().Count() > 0) {
    // One call that writes and syncs (by fdatasync) is as fast as a write and a SyncWAL after it.
    rocksdb::WriteOptions options;
    options.sync = builder_.sync();
    status = database_.db().Write(options, &builder_.durable());
  } else if (builder_.sync()) {
    status = database_.db().SyncWAL();
  }
  if (builder_.sync()) {
    const auto took = std::chrono::steady_clock::now() - begin;
    last_sync_us_ = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  }
  return status;
}

void Committer::count() {
  groups_.fetch_add(1, std::memory_order_relaxed);
  if (builder_.sync()) syncs_.fetch_add(1, std::memory_order_relaxed);
  puts_.fetch_add(builder_.puts(), std::memory_order_relaxed);
  put_bytes_.fetch_add(builder_.put_bytes(), std::memory_order_relaxed);
}

void Committer::complete(Submission& submission, const std::optional<StoreError>& error) {
  if (submission.done) submission.done(error);
  // What the completion and the puts refer to is let go of here, in order.
  submission = Submission{};
}

StoreStats Committer::stats() const {
  StoreStats stats;
  stats.groups = groups_;
  stats.syncs = syncs_;
  stats.puts = puts_;
  stats.put_bytes = put_bytes_;
  stats.last_sync_us = last_sync_us_;
  return stats;
}

}  // namespace stoat::store
