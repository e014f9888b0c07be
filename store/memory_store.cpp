#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/assert.hpp"
#include "store/open.hpp"
#include "store/read_collector.hpp"

namespace stoat::store {
namespace {

struct StreamIdLess {
  bool operator()(const StreamId& a, const StreamId& b) const {
    return std::tie(a.queue, a.stream) < std::tie(b.queue, b.stream);
  }
};

// The contract of store.hpp over ordinary maps.
//
// Owner: as Store.
// Thread: one thread of its own does everything in the order submitted, reads included, so that
//         tests meet the same asynchrony as with the durable engine. stats() reads counters.
// Does not survive: the folder-less counterpart of the RocksDB engine, for tests.
class MemoryStore final : public Store {
 public:
  MemoryStore() : thread_([this] { run(); }) {}

  ~MemoryStore() override { stop(); }

  Recovered recover() override {
    STOAT_ASSERT(!recovered_);
    recovered_ = true;
    Recovered found;
    found.next_queue_id = QueueId{1};
    return found;
  }

  void submit(Batch batch, Completion done) override {
    post([this, batch = std::move(batch), done = std::move(done)] {
      apply(batch);
      ++groups_;
      if (batch.sync) ++syncs_;
      if (done) done(std::nullopt);
    });
  }

  void save_topology(TopologyChange change, Completion done) override {
    post([this, change = std::move(change), done = std::move(done)] {
      apply(change);
      ++groups_;
      ++syncs_;
      if (done) done(std::nullopt);
    });
  }

  void read(StreamId stream, Sequence from, ReadLimit limit, ReadCompletion done) override {
    post([this, stream, from, limit, done = std::move(done)] {
      done(read_now(stream, from, limit));
    });
  }

  void close(std::span<const QueueNumbers>) override { stop(); }

  StoreStats stats() const override {
    StoreStats stats;
    stats.groups = groups_;
    stats.syncs = syncs_;
    stats.puts = puts_;
    stats.put_bytes = put_bytes_;
    return stats;
  }

 private:
  struct Message {
    std::string bytes;
    bool transient;
  };
  using Stream = std::map<Sequence, Message>;

  void post(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    STOAT_ASSERT(recovered_ && !stopping_);
    work_.push_back(std::move(work));
    wake_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !work_.empty(); });
      if (work_.empty()) return;
      auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // what it holds may be freed by its owner's thread next
      lock.lock();
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void apply(const Batch& batch) {
    for (const Put& put : batch.puts) {
      STOAT_ASSERT(put.sequence.value > 0, put.stream.queue);
      if (deleted_.contains(put.stream.queue)) continue;
      ++puts_;
      put_bytes_ += put.bytes.size();
      streams_[put.stream].insert_or_assign(put.sequence,
                                            Message{std::string(put.bytes), put.transient});
    }
    for (const Settle& settle : batch.settles) {
      auto found = streams_.find(settle.stream);
      if (found == streams_.end()) continue;
      Stream& stream = found->second;
      stream.erase(stream.lower_bound(settle.first), stream.upper_bound(settle.last));
    }
  }

  void apply(const TopologyChange& change) {
    for (const auto& [key, json] : change.puts) topology_.insert_or_assign(key, json);
    for (const auto& key : change.erases) topology_.erase(key);
    for (QueueId queue : change.deleted_queues) {
      deleted_.insert(queue);
      streams_.erase(streams_.lower_bound(StreamId{queue, 0}),
                     streams_.upper_bound(StreamId{queue, 255}));
    }
  }

  ReadResult read_now(StreamId id, Sequence from, ReadLimit limit) const {
    ReadCollector collector(from, limit);
    auto found = streams_.find(id);
    if (found != streams_.end()) {
      const Stream& stream = found->second;
      for (auto at = stream.lower_bound(from); at != stream.end(); ++at) {
        if (!collector.add(at->first, at->second.bytes, at->second.transient)) break;
      }
    }
    return collector.finish();
  }

  std::map<std::string, std::string> topology_;
  std::map<StreamId, Stream, StreamIdLess> streams_;
  std::set<QueueId> deleted_;

  std::atomic<std::uint64_t> groups_ = 0;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<std::uint64_t> puts_ = 0;
  std::atomic<std::uint64_t> put_bytes_ = 0;

  std::mutex mutex_;  // guards work_, stopping_ and recovered_ once threads submit
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  bool recovered_ = false;
  std::thread thread_;  // last: starts when everything above stands
};

}  // namespace

std::unique_ptr<Store> make_memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace stoat::store
