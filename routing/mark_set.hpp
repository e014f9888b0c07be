#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoat::routing {

// A set of small numbers that is emptied in constant time: a number is in it when its mark is of
// the present epoch. Epoch is an unsigned type; a narrow one only serves to see it wrap.
template <class Epoch = std::uint32_t>
class MarkSet {
 public:
  // Empties the set and makes room for the numbers below `size`.
  void clear(std::size_t size) {
    if (marks_.size() < size) marks_.resize(std::max(size, 2 * marks_.size()), 0);
    if (++epoch_ == 0) {  // wrapped: marks of long ago would look fresh
      std::fill(marks_.begin(), marks_.end(), 0);
      epoch_ = 1;
    }
  }
  // True when `number` was not in the set before. REQUIRES: below the size given to clear().
  bool insert(std::uint32_t number) {
    if (marks_[number] == epoch_) return false;
    marks_[number] = epoch_;
    return true;
  }

 private:
  std::vector<Epoch> marks_;
  Epoch epoch_ = 0;
};

}  // namespace stoat::routing
