#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "rocksdb/iterator.h"
#include "store/database.hpp"
#include "store/shared_body.hpp"
#include "store/stream_table.hpp"

namespace stoat::store {

// Walks over the stored messages of one stream, durable and transient ones merged, in the order of
// their sequences, up to an end. Stretches that are settled are jumped over, not read; where a
// message only refers to its body, that is fetched.
//
// Owner: Reader, for one read. Thread: one.
class MessageCursor {
 public:
  MessageCursor(Database& database, const StreamState& stream, Sequence end);

  // To the first stored message at or above `from` that is not settled.
  void seek(Sequence from);
  void next() { seek(sequence().next()); }

  bool valid() const { return at_ != nullptr; }
  Sequence sequence() const;
  std::string_view bytes() const { return bytes_; }
  bool transient() const { return at_ == iterators_[1].get(); }
  rocksdb::Status status() const;

 private:
  void position(Sequence from);
  void advance(rocksdb::Iterator& iterator, Sequence from) const;
  void jump(rocksdb::Iterator& iterator, Sequence from) const;
  bool settled(Sequence sequence);
  bool fetch();
  bool fetch_body(const BodyReference& reference);

  Database& database_;
  const StreamState& stream_;
  const MessageKey end_key_;
  const rocksdb::Slice upper_bound_;
  std::array<std::unique_ptr<rocksdb::Iterator>, 2> iterators_;  // durable, transient or null
  rocksdb::Iterator* at_ = nullptr;
  bool placed_ = false;
  SettledRun run_;  // looked up last; begins at or below where the cursor stands
  std::string_view bytes_;
  rocksdb::PinnableSlice body_;
  rocksdb::Status body_status_;
};

}  // namespace stoat::store
