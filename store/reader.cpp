#include "store/reader.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_name.hpp"
#include "store/error_text.hpp"
#include "store/message_cursor.hpp"
#include "store/read_collector.hpp"

namespace stoat::store {
namespace {

// Where a stream's positions before its recovery are neither stored nor settled.
//
// Where something is missing it makes sure that nothing is: RocksDB 7.8, stepping from one table to
// the next, takes a table whose first block cannot be read for one that has ended, without an
// error; a seek into it does tell.
class GapFinder {
 public:
  GapFinder(Database& database, const StreamState& stream, Sequence from)
      : database_(database), stream_(stream), from_(from) {}

  // Nothing was met between the last message seen and this one. False: something there cannot be
  // read.
  bool see(Sequence stored) {
    if (!add(stored)) return false;
    from_ = stored.next();
    return true;
  }
  bool see_end(Sequence end) { return add(end); }
  const rocksdb::Status& status() const { return status_; }
  std::vector<Settle> take() { return std::move(gaps_); }

 private:
  bool add(Sequence end) {
    bool made_sure = false;
    while (from_ < end) {
      const SettledRun run = stream_.live_run_at(from_);
      const Sequence run_end = std::min(run.end, end);
      if (!run.settled) {
        if (!std::exchange(made_sure, true) && !is_readable(from_, end)) return false;
        const Sequence gap_end = std::min(run_end, stream_.recovered_next);
        if (from_ < gap_end) {
          gaps_.push_back({stream_.id, from_, Sequence{gap_end.value - 1}});
        }
      }
      from_ = run_end;
    }
    return true;
  }

  bool is_readable(Sequence from, Sequence end) {
    MessageCursor cursor(database_, stream_, end);
    cursor.seek(from);
    status_ = cursor.status();
    return status_.ok();
  }

  Database& database_;
  const StreamState& stream_;
  Sequence from_;
  std::vector<Settle> gaps_;
  rocksdb::Status status_;
};

}  // namespace

Reader::Reader(Database& database, const StreamTable& streams, OnGaps on_gaps)
    : database_(database),
      streams_(streams),
      on_gaps_(std::move(on_gaps)),
      thread_([this] { run(); }) {}

Reader::~Reader() {
  stop();
}

void Reader::read(StreamId stream, Sequence from, ReadLimit limit, Store::ReadCompletion done) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      requests_.push_back({stream, from, limit, std::move(done)});
      wake_.notify_one();
      return;
    }
  }
  ReadResult closed;
  closed.resume_from = from;
  closed.error = StoreError{"the store is closed"};
  done(std::move(closed));
}

void Reader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (Request& request : std::exchange(requests_, {})) {
    read(request.stream, request.from, request.limit, std::move(request.done));
  }
}

void Reader::run() {
  name_this_thread("store-reader");
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (stopping_) return;
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    request.done(answer(request));
    lock.lock();
  }
}

ReadResult Reader::answer(const Request& request) {
  ReadCollector collector(request.from, request.limit);
  const auto stream = streams_.find(request.stream).stream;
  if (!stream || request.from >= request.limit.end) return collector.finish();

  MessageCursor cursor(database_, *stream, request.limit.end);
  GapFinder gaps(database_, *stream, request.from);
  bool readable = true;
  for (cursor.seek(request.from); cursor.valid(); cursor.next()) {
    readable = gaps.see(cursor.sequence());
    if (!readable || !collector.add(cursor.sequence(), cursor.bytes(), cursor.transient())) break;
  }
  ReadResult result = collector.finish();
  auto status = cursor.status();
  if (status.ok() && readable && result.end) gaps.see_end(request.limit.end);
  if (status.ok()) status = gaps.status();
  if (!status.ok()) {
    // What was read is answered; the next read begins with what cannot be.
    result.end = false;
    result.resume_from = request.from;
    if (result.messages.empty()) {
      result.error = StoreError{"cannot read from " + database_.dir() + ": " + error_text(status)};
      return result;
    }
    result.resume_from = result.messages.back().sequence.next();
  }
  if (auto found = gaps.take(); !found.empty()) on_gaps_(std::move(found));
  return result;
}

}  // namespace stoat::store
