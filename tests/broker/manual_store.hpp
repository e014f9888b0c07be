#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace stoat::testing {

// A store whose every step is taken by the test: nothing is applied and no completion runs before
// complete_batch() or complete_read() is called, on the test's own thread. It checks what is handed
// to it (each message put once, never after its end, counts exact, numbers ahead of their use), and
// crash() leaves what a power cut would: the synced batches, and of the rest a prefix.
class ManualStore final : public store::Store {
 public:
  struct Message {
    std::string bytes;
    bool transient = false;
  };
  struct Stream {
    std::map<std::uint64_t, Message> alive;
    std::set<std::uint64_t> put;      // ever
    std::set<std::uint64_t> settled;  // named by a settle
    std::uint64_t reserved_next = 0;
    std::uint64_t ceiling = 0;
  };

  // --- store::Store ---
  store::Recovered recover() override;
  void submit(store::Batch batch, Completion done) override;
  void save_topology(store::TopologyChange change, Completion done) override;
  void read(store::StreamId stream, Sequence from, store::ReadLimit limit,
            ReadCompletion done) override;
  void close(std::span<const store::QueueNumbers> exact_numbers) override;
  store::StoreStats stats() const override { return stats_; }

  // --- the test's side ---
  std::size_t batches_waiting() const { return waiting_.size(); }
  std::size_t reads_waiting() const { return reads_.size(); }
  // The batch to be completed next.
  const store::Batch& front() const { return waiting_.front().batch; }
  void complete_batch();
  void fail_batch();
  void complete_read(std::size_t index = 0);
  bool reads_fail = false;  // with an error instead of an answer
  // Batches that a power cut may take.
  std::size_t unsynced() const { return unsynced_.size() + waiting_.size(); }
  // Power goes, and with it the completions of what waits; the first `kept` of unsynced() survive.
  // The submitters' bytes must still stand.
  void crash(std::size_t kept);

  const Stream& stream(QueueId queue) { return current_.streams[queue.value]; }
  // The message is there and would be after a power cut.
  bool survives(QueueId queue, Sequence sequence) const;

 private:
  struct Entry {
    store::Batch batch;
    std::vector<std::string> bytes;  // of the puts, where the batch outlives its completion
    std::vector<QueueId> deleted_queues;
    Completion done;
  };
  struct Read {
    store::StreamId stream;
    Sequence from;
    store::ReadLimit limit;
    ReadCompletion done;
  };
  struct State {
    std::map<std::uint64_t, Stream> streams;
    std::set<std::uint64_t> deleted;

    void apply(const Entry& entry);
    void apply_settles(const store::Batch& batch);
  };

  static void keep_bytes(Entry& entry);

  State current_;
  State synced_;                // as of the last sync
  std::deque<Entry> unsynced_;  // applied since
  std::deque<Entry> waiting_;
  std::vector<Read> reads_;
  bool clean_ = true;
  bool closed_ = false;
  store::StoreStats stats_;
};

}  // namespace stoat::testing
