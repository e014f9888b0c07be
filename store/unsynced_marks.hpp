#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/stream_table.hpp"

namespace stoat::store {

// Settle marks that were written but not synced yet, and deleted queues likewise: on the next sync
// they are published to the flush filter.
//
// Groups that only settle ask for no sync. So that a queue being drained gives its space back all
// the same, a sync is due once a named amount has gathered; at the rate a disk can be drained that
// is some tens of syncs a second.
//
// Owner and thread: the committer.
class UnsyncedMarks {
 public:
  static constexpr std::uint64_t kMaxBytes = 8u << 20;
  static constexpr std::uint64_t kMaxPositions = 64u << 10;

  struct Published {
    std::uint64_t bytes = 0;
    std::uint64_t positions = 0;
    std::vector<QueueId> deleted;
  };

  void add(const std::shared_ptr<StreamState>& stream, const Settle& settle) {
    bytes_ += settle.bytes;
    positions_ += settle.last.value - settle.first.value + 1;
    if (!marks_.empty() && marks_.back().stream == stream &&
        marks_.back().last.next() == settle.first) {
      marks_.back().last = settle.last;
      return;
    }
    marks_.push_back({stream, settle.first, settle.last});
  }

  // bytes: of the messages that go with it.
  void add_deleted(QueueId queue, std::uint64_t bytes) {
    deleted_.push_back(queue);
    bytes_ += bytes;
  }

  bool sync_due() const { return bytes_ >= kMaxBytes || positions_ >= kMaxPositions; }

  Published publish(StreamTable& streams) {
    for (const Mark& mark : marks_) mark.stream->publish(mark.first, mark.last);
    for (QueueId queue : deleted_) streams.mark_deleted(queue);
    Published published{bytes_, positions_, std::move(deleted_)};
    marks_.clear();
    deleted_.clear();
    bytes_ = 0;
    positions_ = 0;
    return published;
  }

 private:
  struct Mark {
    std::shared_ptr<StreamState> stream;
    Sequence first;
    Sequence last;
  };

  std::vector<Mark> marks_;
  std::vector<QueueId> deleted_;
  std::uint64_t bytes_ = 0;
  std::uint64_t positions_ = 0;
};

}  // namespace stoat::store
