#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/assert.hpp"

namespace stoat::broker {

// A double-ended queue in one block: 24 bytes when empty, no allocation per element, and the block
// goes when a long ring has run empty. (An empty std::deque holds half a kilobyte, which ten
// thousand idle queues would each pay several times.)
// REQUIRES: T is default constructible and moves without throwing; a popped slot keeps a
// moved-from or default T.
template <class T>
class RingBuffer {
 public:
  RingBuffer() = default;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  T& operator[](std::size_t index) {
    STOAT_ASSERT(index < size_, index, size_);
    return slots_[(first_ + index) & (capacity_ - 1)];
  }
  const T& operator[](std::size_t index) const { return const_cast<RingBuffer&>(*this)[index]; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    slots_[(first_ + size_) & (capacity_ - 1)] = std::move(value);
    ++size_;
  }

  // Before the element at `index`; moves those behind it.
  void insert(std::size_t index, T value) {
    STOAT_ASSERT(index <= size_, index, size_);
    push_back(std::move(value));
    for (std::size_t at = size_ - 1; at > index; --at) std::swap((*this)[at], (*this)[at - 1]);
  }

  T pop_front() {
    STOAT_ASSERT(size_ > 0);
    T value = std::exchange(slots_[first_], T{});
    first_ = (first_ + 1) & (capacity_ - 1);
    if (--size_ == 0 && capacity_ > kKeptCapacity) clear();
    return value;
  }

  void clear() {
    slots_.reset();
    capacity_ = 0;
    first_ = 0;
    size_ = 0;
  }

 private:
  static constexpr std::uint32_t kFirstCapacity = 8;
  static constexpr std::uint32_t kKeptCapacity = 64;

  void grow() {
    const std::uint32_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
    STOAT_ASSERT(capacity > capacity_, capacity_);
    auto slots = std::make_unique<T[]>(capacity);
    for (std::uint32_t i = 0; i < size_; ++i) slots[i] = std::move((*this)[i]);
    slots_ = std::move(slots);
    capacity_ = capacity;
    first_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  std::uint32_t capacity_ = 0;  // zero or a power of two
  std::uint32_t first_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace stoat::broker
