#pragma once

#include <cstdint>
#include <deque>

#include "base/ids.hpp"

namespace stoat::broker {

// The publishes of a channel in confirm mode that are not yet answered. A tag waits for one answer
// from each home that took the message; its fate is the worst of them.
// Owner: Channel. Thread: the channel's worker.
// Invariants: tags are answered in order, each once; a cumulative ack never covers a nacked tag.
class ConfirmTracker {
 public:
  // The next publish's tag, waiting for the answers of `homes` homes (0: decided already).
  PublishTag add(std::uint8_t homes);
  // The tag that add() will give.
  PublishTag next_tag() const { return PublishTag(first_.value + waiting_.size()); }

  // One home's answer for tags first..last.
  void decide(PublishTag first, PublishTag last, bool nack);

  // Takes the decided tags off the front: ack(last, multiple) and nack(tag), in order.
  template <class Ack, class Nack>
  void flush(Ack ack, Nack nack) {
    std::uint64_t run = 0;
    while (!waiting_.empty() && waiting_.front().answers_due == 0) {
      const bool refused = waiting_.front().nack;
      waiting_.pop_front();
      const PublishTag tag = first_;
      first_ = first_.next();
      if (!refused) {
        ++run;
        continue;
      }
      if (run > 0) ack(PublishTag(tag.value - 1), run > 1);
      run = 0;
      nack(tag);
    }
    if (run > 0) ack(PublishTag(first_.value - 1), run > 1);
  }

  std::size_t outstanding() const { return waiting_.size(); }

 private:
  struct Entry {
    std::uint8_t answers_due = 0;
    bool nack = false;
  };
  std::deque<Entry> waiting_;
  PublishTag first_{1};  // the tag of waiting_.front()
};

}  // namespace stoat::broker
