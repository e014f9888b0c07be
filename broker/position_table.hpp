#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "base/assert.hpp"
#include "base/ids.hpp"

namespace stoat::broker {

// Entries by sequence, in order. Sequences come in runs, so they are kept in pages of sixteen: one
// allocation and at most one search per page, and in the order of delivery none of the two; the
// memory follows what is held, however far apart it lies.
template <class Entry>
class PositionTable {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // REQUIRES: nothing is held there.
  Entry& insert(Sequence at, Entry entry) {
    Page& page = page_for_insert(at.value / kPagePositions);
    const auto slot = static_cast<unsigned>(at.value % kPagePositions);
    STOAT_ASSERT((page.alive & bit(slot)) == 0, at);
    page.alive = static_cast<Bits>(page.alive | bit(slot));
    page.entries[slot] = std::move(entry);
    ++size_;
    return page.entries[slot];
  }

  Entry* find(Sequence at) {
    auto page = find_page(at.value / kPagePositions);
    if (page == pages_.end()) return nullptr;
    const auto slot = static_cast<unsigned>(at.value % kPagePositions);
    return (page->second.alive & bit(slot)) != 0 ? &page->second.entries[slot] : nullptr;
  }
  bool contains(Sequence at) const { return const_cast<PositionTable*>(this)->find(at) != nullptr; }

  // REQUIRES: !empty().
  Sequence first() const {
    const auto& [number, page] = *pages_.begin();
    return position(number, static_cast<unsigned>(std::countr_zero(page.alive)));
  }
  Entry& front() {
    Page& page = pages_.begin()->second;
    return page.entries[std::countr_zero(page.alive)];
  }

  // Takes the entry at `at` out. REQUIRES: contains(at).
  Entry take(Sequence at) {
    auto page = find_page(at.value / kPagePositions);
    STOAT_ASSERT(page != pages_.end(), at);
    const auto slot = static_cast<unsigned>(at.value % kPagePositions);
    STOAT_ASSERT((page->second.alive & bit(slot)) != 0, at);
    return take_slot(page, slot);
  }

  // Takes out all of first..last (inclusive) in order: take(sequence, Entry&&). `keep` says of an
  // entry that it stays. Neither may touch this table.
  template <class Keep, class Take>
  void take_range(Sequence first, Sequence last, Keep keep, Take take) {
    if (first > last) return;
    auto page = find_page(first.value / kPagePositions);
    if (page == pages_.end()) page = pages_.lower_bound(first.value / kPagePositions);
    while (page != pages_.end() && page->first <= last.value / kPagePositions) {
      const auto here = page++;
      Bits in_range = static_cast<Bits>(here->second.alive & mask(here->first, first, last));
      while (in_range != 0) {
        const auto slot = static_cast<unsigned>(std::countr_zero(in_range));
        in_range = static_cast<Bits>(in_range & (in_range - 1));
        if (keep(here->second.entries[slot])) continue;
        const Sequence at = position(here->first, slot);
        const bool page_goes = std::has_single_bit(here->second.alive);
        take(at, take_slot(here, slot));
        if (page_goes) break;
      }
    }
  }

  // visit(sequence, entry) in order, from `from` on, until it returns false.
  template <class Visit>
  void for_each(Sequence from, Visit visit) {
    for (auto page = pages_.lower_bound(from.value / kPagePositions); page != pages_.end();
         ++page) {
      for (unsigned slot = 0; slot < kPagePositions; ++slot) {
        const Sequence at = position(page->first, slot);
        if ((page->second.alive & bit(slot)) == 0 || at < from) continue;
        if (!visit(at, page->second.entries[slot])) return;
      }
    }
  }
  template <class Visit>
  void for_each(Sequence from, Visit visit) const {
    const_cast<PositionTable*>(this)->for_each(
        from, [&](Sequence at, const Entry& entry) { return visit(at, entry); });
  }

  void clear() {
    pages_.clear();
    size_ = 0;
  }

 private:
  static constexpr unsigned kPagePositions = 16;
  using Bits = std::uint16_t;
  struct Page {
    Bits alive = 0;
    std::array<Entry, kPagePositions> entries;
  };
  using Pages = std::map<std::uint64_t, Page>;

  static constexpr Bits bit(unsigned slot) { return static_cast<Bits>(1u << slot); }
  static constexpr Sequence position(std::uint64_t page, unsigned slot) {
    return Sequence(page * kPagePositions + slot);
  }
  // The slots of a page that lie within first..last.
  static constexpr Bits mask(std::uint64_t page, Sequence first, Sequence last) {
    std::uint32_t bits = 0xFFFF;
    if (page == first.value / kPagePositions) bits &= 0xFFFFu << (first.value % kPagePositions);
    if (page == last.value / kPagePositions) bits &= 0xFFFFu >> (15 - last.value % kPagePositions);
    return static_cast<Bits>(bits);
  }

  Page& page_for_insert(std::uint64_t number) {
    if (!pages_.empty()) {
      auto last = std::prev(pages_.end());
      if (last->first == number) return last->second;
      if (last->first < number) return pages_.try_emplace(pages_.end(), number)->second;
    }
    return pages_[number];
  }
  typename Pages::iterator find_page(std::uint64_t number) {
    // Settles mostly come in the order of delivery.
    auto first = pages_.begin();
    if (first == pages_.end() || first->first == number) return first;
    return pages_.find(number);
  }
  Entry take_slot(typename Pages::iterator page, unsigned slot) {
    Entry entry = std::exchange(page->second.entries[slot], Entry{});
    page->second.alive = static_cast<Bits>(page->second.alive & ~bit(slot));
    if (page->second.alive == 0) pages_.erase(page);
    --size_;
    return entry;
  }

  Pages pages_;
  std::size_t size_ = 0;
};

}  // namespace stoat::broker
