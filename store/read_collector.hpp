#pragma once

#include <string_view>

#include "store/store.hpp"

namespace stoat::store {

// Gathers the answer to one read within its limits; both engines fill it in sequence order, so that
// resume_from and end mean the same in each.
//
// The message that no longer fits is not answered but decides where the next read continues: end is
// true exactly when nothing alive was offered beyond the answer.
class ReadCollector {
 public:
  ReadCollector(Sequence from, ReadLimit limit) : limit_(limit) {
    result_.resume_from = from < limit.end ? limit.end : from;
    result_.end = true;
  }

  // Offers the next alive message. False: no more is wanted.
  bool add(Sequence sequence, std::string_view bytes, bool transient) {
    if (sequence >= limit_.end) return false;
    const bool first = result_.messages.empty();
    if (!first && (result_.messages.size() >= limit_.max_messages ||
                   bytes_ + bytes.size() > limit_.max_bytes)) {
      result_.resume_from = sequence;
      result_.end = false;
      return false;
    }
    bytes_ += bytes.size();
    result_.messages.push_back({sequence, std::string(bytes), transient});
    return true;
  }

  ReadResult finish() { return std::move(result_); }

 private:
  ReadLimit limit_;
  ReadResult result_;
  std::size_t bytes_ = 0;
};

}  // namespace stoat::store
