#include "store/settled_set.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "base/endian.hpp"

namespace stoat::store {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

// The bits first..last of one word.
constexpr std::uint64_t bit_range(std::uint64_t first, std::uint64_t last) {
  return (kAllBits << first) & (kAllBits >> (63 - last));
}

// The first bit at or above `from` whose value is `wanted`, or kChunkPositions.
template <class Words>
std::uint64_t find_bit(const Words& words, std::uint64_t from, bool wanted) {
  for (std::uint64_t word = from / 64; word < words.size(); ++word) {
    std::uint64_t bits = wanted ? words[word] : ~words[word];
    if (word == from / 64) bits &= kAllBits << (from % 64);
    if (bits != 0) return word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
  }
  return SettledSet::kChunkPositions;
}

}  // namespace

Sequence SettledSet::settled_end() const {
  // Chunks come into being with their first bit, so the last one is never empty.
  if (chunks_.empty()) return watermark();
  const auto& [index, chunk] = *chunks_.rbegin();
  if (chunk.full()) return Sequence{(index + 1) * kChunkPositions};
  std::uint64_t end = index * kChunkPositions;
  for (std::uint64_t word = 0; word < kWords; ++word) {
    const std::uint64_t bits = (*chunk.words)[word];
    if (bits != 0) {
      end = index * kChunkPositions + word * 64 + static_cast<std::uint64_t>(std::bit_width(bits));
    }
  }
  return Sequence{std::max(end, watermark_)};
}

bool SettledSet::contains(Sequence position) const {
  if (position.value < watermark_) return true;
  auto found = chunks_.find(position.value / kChunkPositions);
  if (found == chunks_.end()) return false;
  if (found->second.full()) return true;
  const std::uint64_t bit = position.value % kChunkPositions;
  return ((*found->second.words)[bit / 64] >> (bit % 64)) & 1;
}

Sequence SettledSet::next_unsettled(Sequence from) const {
  std::uint64_t position = std::max(from.value, watermark_);
  for (auto at = chunks_.find(position / kChunkPositions); at != chunks_.end(); ++at) {
    const auto& [index, chunk] = *at;
    if (index != position / kChunkPositions) break;  // no chunk here: nothing is settled
    if (!chunk.full()) {
      const std::uint64_t bit = find_bit(*chunk.words, position % kChunkPositions, false);
      if (bit < kChunkPositions) return Sequence{index * kChunkPositions + bit};
    }
    position = (index + 1) * kChunkPositions;
  }
  return Sequence{position};
}

Sequence SettledSet::next_settled(Sequence from, Sequence limit) const {
  if (from.value < watermark_) return std::min(from, limit);
  for (auto at = chunks_.lower_bound(from.value / kChunkPositions); at != chunks_.end(); ++at) {
    const auto& [index, chunk] = *at;
    const std::uint64_t start = std::max(from.value, index * kChunkPositions);
    if (start >= limit.value) break;
    if (chunk.full()) return Sequence{start};
    const std::uint64_t bit = find_bit(*chunk.words, start % kChunkPositions, true);
    if (bit < kChunkPositions) return std::min(Sequence{index * kChunkPositions + bit}, limit);
  }
  return limit;
}

void SettledSet::insert(Sequence first, Sequence last) {
  std::uint64_t position = std::max(first.value, watermark_);
  if (last.value < position) return;
  if (position == watermark_) {
    advance_to(last.value + 1);
    return;
  }
  while (position <= last.value) {
    const std::uint64_t index = position / kChunkPositions;
    const std::uint64_t chunk_last = std::min(last.value, (index + 1) * kChunkPositions - 1);
    set_bits(touch(index), position % kChunkPositions, chunk_last % kChunkPositions);
    position = chunk_last + 1;
  }
}

SettledSet::Chunk& SettledSet::touch(std::uint64_t index) {
  Chunk& chunk = chunks_[index];
  if (chunk.settled == 0 && !chunk.words) chunk.words = std::make_unique<Words>();
  if (tracked_ && !chunk.changed) {
    chunk.changed = true;
    changed_.push_back(index);
  }
  return chunk;
}

void SettledSet::set_bits(Chunk& chunk, std::uint64_t first_bit, std::uint64_t last_bit) {
  if (chunk.full()) return;
  Words& words = *chunk.words;
  for (std::uint64_t word = first_bit / 64; word <= last_bit / 64; ++word) {
    const std::uint64_t from = word == first_bit / 64 ? first_bit % 64 : 0;
    const std::uint64_t to = word == last_bit / 64 ? last_bit % 64 : 63;
    const std::uint64_t added = bit_range(from, to) & ~words[word];
    chunk.settled += static_cast<std::uint32_t>(std::popcount(added));
    words[word] |= added;
  }
  if (chunk.full()) chunk.words.reset();
}

// Everything below `position` is settled now; so is whatever the bitmap has joined on to it.
void SettledSet::advance_to(std::uint64_t position) {
  STOAT_ASSERT(position > watermark_, position, watermark_);
  watermark_ = position;
  drop_chunks_below(watermark_ / kChunkPositions);
  if (chunks_.empty()) return;
  watermark_ = next_unsettled(Sequence{position}).value;
  drop_chunks_below(watermark_ / kChunkPositions);
  // A chunk whose bits all lie below the watermark now says nothing any more.
  if (!chunks_.empty() && settled_end().value == watermark_) {
    drop_chunks_below(chunks_.rbegin()->first + 1);
  }
}

void SettledSet::drop_chunks_below(std::uint64_t index) {
  while (!chunks_.empty() && chunks_.begin()->first < index) {
    const auto& [passed, chunk] = *chunks_.begin();
    if (chunk.persisted) passed_.push_back(passed);
    chunks_.erase(chunks_.begin());
  }
}

SettledSet::Changes SettledSet::take_changes() {
  Changes changes;
  for (std::uint64_t index : changed_) {
    auto found = chunks_.find(index);
    if (found == chunks_.end() || !found->second.changed) continue;  // passed, or listed twice
    found->second.changed = false;
    found->second.persisted = true;
    changes.put.push_back(index);
  }
  changed_.clear();
  // A chunk may have been passed and, its watermark standing inside it, come back.
  for (std::uint64_t index : passed_) {
    auto found = chunks_.find(index);
    if (found == chunks_.end()) {
      changes.erase.push_back(index);
    } else {
      found->second.persisted = true;
    }
  }
  passed_.clear();
  return changes;
}

// A chunk's value: the index of the first word that is not zero, 1 byte, then the words up to the
// last that is not zero, 8 bytes big-endian each. Empty when every position is settled.
std::string SettledSet::encode_chunk(std::uint64_t index) const {
  const Chunk& chunk = chunks_.at(index);
  if (chunk.full()) return {};
  const Words& words = *chunk.words;
  std::size_t first = 0;
  std::size_t end = kWords;
  while (first < kWords && words[first] == 0) ++first;
  while (end > first && words[end - 1] == 0) --end;
  std::string encoded(1 + (end - first) * 8, '\0');
  encoded[0] = static_cast<char>(first);
  for (std::size_t word = first; word < end; ++word) {
    store_big(encoded.data() + 1 + (word - first) * 8, words[word]);
  }
  return encoded;
}

void SettledSet::restore_watermark(Sequence watermark) {
  STOAT_ASSERT(chunks_.empty());
  watermark_ = watermark.value;
}

bool SettledSet::restore_chunk(std::uint64_t index, std::string_view encoded) {
  const bool full = encoded.empty();
  const std::size_t count = full ? 0 : (encoded.size() - 1) / 8;
  const std::size_t first = full ? 0 : static_cast<unsigned char>(encoded[0]);
  if (!full && (encoded.size() != 1 + count * 8 || count == 0 || first + count > kWords))
    return false;

  if (index < watermark_ / kChunkPositions) {
    if (tracked_) passed_.push_back(index);
    return true;
  }
  Chunk& chunk = chunks_[index];
  chunk.persisted = tracked_;
  if (full) {
    chunk.settled = kChunkPositions;
  } else {
    chunk.words = std::make_unique<Words>();
    for (std::size_t word = 0; word < count; ++word) {
      const auto bits = load_big<std::uint64_t>(encoded.data() + 1 + word * 8);
      (*chunk.words)[first + word] = bits;
      chunk.settled += static_cast<std::uint32_t>(std::popcount(bits));
    }
    if (chunk.full()) chunk.words.reset();
  }
  const std::uint64_t joined = next_unsettled(Sequence{watermark_}).value;
  if (joined != watermark_) advance_to(joined);
  return true;
}

std::vector<std::uint64_t> SettledSet::persisted_chunks() const {
  std::vector<std::uint64_t> indexes = passed_;
  for (const auto& [index, chunk] : chunks_) {
    if (chunk.persisted) indexes.push_back(index);
  }
  return indexes;
}

}  // namespace stoat::store
