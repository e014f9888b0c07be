#include "store/reader.hpp"

#include <algorithm>
#include <utility>

#include "store/message_cursor.hpp"
#include "store/read_collector.hpp"

namespace stoat::store {
namespace {

// Where a stream's positions before its recovery are neither stored nor settled.
class GapFinder {
 public:
  GapFinder(const StreamState& stream, Sequence from) : stream_(stream), from_(from) {}

  // Nothing is stored between the last message seen and this one.
  void see(Sequence stored) {
    add(stored);
    from_ = stored.next();
  }
  void see_end(Sequence end) { add(end); }
  std::vector<Settle> take() { return std::move(gaps_); }

 private:
  void add(Sequence end) {
    end = std::min(end, stream_.recovered_next);
    while (from_ < end) {
      const SettledRun run = stream_.live_run_at(from_);
      const Sequence run_end = std::min(run.end, end);
      if (!run.settled) gaps_.push_back({stream_.id, from_, Sequence{run_end.value - 1}});
      from_ = run_end;
    }
  }

  const StreamState& stream_;
  Sequence from_;
  std::vector<Settle> gaps_;
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
  GapFinder gaps(*stream, request.from);
  for (cursor.seek(request.from); cursor.valid(); cursor.next()) {
    gaps.see(cursor.sequence());
    if (!collector.add(cursor.sequence(), cursor.bytes(), cursor.transient())) break;
  }
  ReadResult result = collector.finish();
  if (const auto status = cursor.status(); !status.ok()) {
    result = {};
    result.resume_from = request.from;
    result.error = StoreError{"cannot read from " + database_.dir() + ": " + status.ToString()};
    return result;
  }
  if (result.end) gaps.see_end(request.limit.end);
  if (auto found = gaps.take(); !found.empty()) on_gaps_(std::move(found));
  return result;
}

}  // namespace stoat::store
