#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace stoat::store {

// Which positions of a stream are settled: everything below a watermark, and above it a bitmap in
// chunks, so that acks in about the order of delivery cost a moving number, and acks in any other
// order one bit each.
//
//        settled ......... | ? ? 1 ? 1 1 ? ? | 1 1 1 1 1 1 1 1 | ? 1 ? ? ...   unsettled
//   1                  watermark    chunk n       full: no bitmap      chunk n+2
//
// Positions start at 1. A chunk covers kChunkPositions positions from a multiple of that number on.
// Chunks persist under keys of their own; take_changes() names those to rewrite or erase, so that a
// group of acks rewrites only what it touched.
//
// Owner: whoever embeds it. Thread: none of its own; not synchronised.
// Invariants: watermark is the first unsettled position; no chunk below it is held; a full chunk
// holds no words.
class SettledSet {
 public:
  static constexpr std::uint64_t kChunkPositions = 4096;

  struct Changes {
    std::vector<std::uint64_t> put;    // chunks to write anew, see encode_chunk
    std::vector<std::uint64_t> erase;  // chunks written earlier that the watermark has passed
  };

  enum class Tracking { changes, none };
  // A set that is never persisted itself keeps no list of changes.
  explicit SettledSet(Tracking tracking = Tracking::changes)
      : tracked_(tracking == Tracking::changes) {}

  // The first position that is not settled.
  Sequence watermark() const { return Sequence{watermark_}; }
  // One above the highest settled position.
  Sequence settled_end() const;

  bool contains(Sequence position) const;
  // The first unsettled position at or above `from`.
  Sequence next_unsettled(Sequence from) const;
  // The first settled position at or above `from`, but not above `limit`.
  Sequence next_settled(Sequence from, Sequence limit) const;

  // Settles first..last, inclusive; what is settled already stays so. Nothing when last < first.
  void insert(Sequence first, Sequence last);

  // What has changed since the last call. The watermark itself is not part of it.
  bool has_changes() const { return !changed_.empty() || !passed_.empty(); }
  Changes take_changes();
  bool has_chunk(std::uint64_t index) const { return chunks_.contains(index); }
  std::string encode_chunk(std::uint64_t index) const;  // REQUIRES: has_chunk(index)

  // Rebuilding from what was persisted: the watermark first, then any of its chunks. False: the
  // bytes are no chunk of ours. A chunk below the watermark is only remembered as one to erase.
  void restore_watermark(Sequence watermark);
  bool restore_chunk(std::uint64_t index, std::string_view encoded);
  // The indexes of all chunks that are persisted now, for erasing the stream as a whole.
  std::vector<std::uint64_t> persisted_chunks() const;

 private:
  static constexpr std::size_t kWords = kChunkPositions / 64;
  using Words = std::array<std::uint64_t, kWords>;

  struct Chunk {
    std::uint32_t settled = 0;     // bits set
    bool changed = false;          // listed in changed_
    bool persisted = false;        // a key of it is on disk
    std::unique_ptr<Words> words;  // null when full
    bool full() const { return settled == kChunkPositions; }
  };

  Chunk& touch(std::uint64_t index);
  void set_bits(Chunk& chunk, std::uint64_t first_bit, std::uint64_t last_bit);
  void advance_to(std::uint64_t position);
  void drop_chunks_below(std::uint64_t index);

  bool tracked_;
  std::uint64_t watermark_ = 1;
  std::map<std::uint64_t, Chunk> chunks_;
  std::vector<std::uint64_t> changed_;
  std::vector<std::uint64_t> passed_;
};

}  // namespace stoat::store
