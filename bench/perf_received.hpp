#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoat::bench {

// Which messages have come out of one queue, a bit for each: finds those that come twice, however
// many consumers share the queue.
//
// Owner: PerfConsumers. Thread: its owner's.
class PerfReceived {
 public:
  static constexpr std::uint32_t kMaxProducers = 100'000;
  static constexpr std::uint64_t kMaxSequence = std::uint64_t{1} << 36;

  // False: this one has come before. REQUIRES: producer and sequence below the limits above.
  bool note(std::uint32_t producer, std::uint64_t sequence) {
    if (producer >= seen_.size()) seen_.resize(producer + 1);
    std::vector<std::uint64_t>& words = seen_[producer];
    const auto word = static_cast<std::size_t>(sequence / 64);
    if (word >= words.size()) words.resize(word + word / 2 + 16);
    const std::uint64_t bit = std::uint64_t{1} << (sequence % 64);
    if (words[word] & bit) return false;
    words[word] |= bit;
    return true;
  }

 private:
  std::vector<std::vector<std::uint64_t>> seen_;  // by producer
};

}  // namespace stoat::bench
