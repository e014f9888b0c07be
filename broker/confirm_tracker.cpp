#include "broker/confirm_tracker.hpp"

#include "base/assert.hpp"

namespace stoat::broker {

PublishTag ConfirmTracker::add(std::uint8_t homes) {
  const PublishTag tag = next_tag();
  waiting_.push_back({homes, false});
  return tag;
}

void ConfirmTracker::decide(PublishTag first, PublishTag last, bool nack) {
  STOAT_ASSERT(first >= first_ && last < next_tag(), first, last, first_, next_tag());
  for (std::uint64_t tag = first.value; tag <= last.value; ++tag) {
    Entry& entry = waiting_[tag - first_.value];
    STOAT_ASSERT(entry.answers_due > 0, tag);
    --entry.answers_due;
    entry.nack = entry.nack || nack;
  }
}

}  // namespace stoat::broker
