#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace stoat::store::testing {

// A seeded workload on a store, and the book of what was submitted and what was promised, against
// which a recovered store is checked:
//   - what was promised to be on the disk is there, what was promised to be settled is not;
//   - nothing is there that was never put, nothing twice, nothing with other bytes;
//   - a batch is there as a whole or not at all;
//   - counts and bytes are those of what can be read;
//   - no number is given out twice.
//
// Owner: a test. Thread: the test's; completions come on the store's and take the lock.
class StoreLedger {
 public:
  explicit StoreLedger(std::uint64_t seed) : random_(seed) {}

  // Reserves numbers and then submits `steps` random things, until the store fails.
  void work(Store& store, int steps);
  // Reports differences as test failures, and goes on from what was found.
  void verify(Store& store, const Recovered& recovered);
  // For a clean stop; from then on these are what is promised.
  std::vector<QueueNumbers> exact_numbers();
  void verify_exact(const Recovered& recovered) const;

 private:
  enum class Known { no, submitted, promised };

  struct Message {
    Known put = Known::submitted;
    Known settled = Known::no;
    // The message whose settling was part of the batch that put this one.
    std::optional<std::pair<std::size_t, std::uint64_t>> instead_of;
  };
  struct Stream {
    StreamId id;
    std::map<std::uint64_t, Message> messages;
    std::uint64_t next = 1;
    std::uint64_t reserved = 1;  // promised
    std::uint64_t ceiling = 0;   // promised
    Known deleted = Known::no;
  };

  bool has_failed() const;
  void add_queue(Store& store);
  void reserve(Store& store, Stream& stream);
  void put_some(Store& store);
  void fan_out(Store& store);
  void settle_some(Store& store);
  void move_one(Store& store);
  void change_topology(Store& store);
  void delete_queue(Store& store);

  void submit(Store& store, Batch batch, bool wait, std::function<void()> promised);
  void put_into(Batch& batch, Stream& stream, std::uint64_t sequence);
  Stream* any_stream();
  std::string bytes_of(StreamId id, std::uint64_t sequence) const;
  std::uint64_t settled_bytes(const Stream& stream, std::uint64_t first, std::uint64_t last) const;

  void verify_stream(Store& store, Stream& stream, const RecoveredStream* found);
  void verify_moves(const Stream& stream) const;
  void verify_topology(const Recovered& recovered);

  std::mt19937_64 random_;
  mutable std::mutex mutex_;
  bool failed_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  // Large messages that several streams have got: by queue and sequence, which of them.
  std::map<std::pair<QueueId, std::uint64_t>, std::uint64_t> shared_;
  std::uint64_t last_shared_ = 0;
  std::uint64_t next_queue_id_ = 1;
  std::uint64_t version_submitted_ = 0;  // of the topology
  std::uint64_t version_promised_ = 0;
};

}  // namespace stoat::store::testing
