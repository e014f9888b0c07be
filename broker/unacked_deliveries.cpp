#include "broker/unacked_deliveries.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace stoat::broker {

void UnackedDeliveries::add(Entry entry) {
  STOAT_ASSERT(entries_.empty() || entries_.back().tag < entry.tag, entry.tag);
  entries_.push_back(entry);
  ++live_;
}

UnackedDeliveries::Entry* UnackedDeliveries::find(DeliveryTag tag) {
  if (first_ == entries_.size()) return nullptr;
  // Tags are mostly dense, so the entry is usually where counting says.
  const DeliveryTag front = entries_[first_].tag;
  if (tag < front) return nullptr;
  const std::uint64_t guess = first_ + (tag.value - front.value);
  Entry* found = nullptr;
  if (guess < entries_.size() && entries_[guess].tag == tag) {
    found = &entries_[guess];
  } else {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto it = std::lower_bound(begin, entries_.end(), tag,
                                     [](const Entry& e, DeliveryTag t) { return e.tag < t; });
    if (it == entries_.end() || it->tag != tag) return nullptr;
    found = &*it;
  }
  return found->state == Entry::State::held ? found : nullptr;
}

void UnackedDeliveries::settle(Entry& entry) {
  STOAT_ASSERT(entry.state == Entry::State::held, entry.tag);
  entry.state = Entry::State::gone;
  ++gone_;
  --live_;
}

void UnackedDeliveries::enlist(Entry& entry) {
  STOAT_ASSERT(entry.state == Entry::State::held, entry.tag);
  entry.state = Entry::State::in_transaction;
  --live_;
}

void UnackedDeliveries::restore_transaction() {
  for (std::size_t i = first_; i < entries_.size(); ++i) {
    if (entries_[i].state != Entry::State::in_transaction) continue;
    entries_[i].state = Entry::State::held;
    ++live_;
  }
}

void UnackedDeliveries::drop_transaction() {
  for (std::size_t i = first_; i < entries_.size(); ++i) {
    if (entries_[i].state != Entry::State::in_transaction) continue;
    entries_[i].state = Entry::State::gone;
    ++gone_;
  }
  compact();
}

void UnackedDeliveries::compact() {
  while (first_ < entries_.size() && entries_[first_].state == Entry::State::gone) {
    ++first_;
    --gone_;
  }
  if (first_ == entries_.size()) {
    entries_.clear();
    first_ = 0;
    // One burst must not pin its memory for the channel's life.
    if (entries_.capacity() > 4096) entries_.shrink_to_fit();
    return;
  }
  const std::size_t kept = entries_.size() - first_ - gone_;
  if (first_ + gone_ <= kept + 64) return;
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
  entries_.erase(entries_.begin(), begin);
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [](const Entry& e) { return e.state == Entry::State::gone; }),
                 entries_.end());
  first_ = 0;
  gone_ = 0;
}

}  // namespace stoat::broker
