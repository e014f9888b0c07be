#include "store/message_cursor.hpp"

#include "store/key_layout.hpp"

namespace stoat::store {
namespace {

// So many keys are stepped over before a jump is tried: a seek costs as much.
constexpr std::uint64_t kStepsWorthASeek = 16;

Sequence key_sequence(const rocksdb::Iterator& iterator) {
  const rocksdb::Slice key = iterator.key();
  return sequence_of({key.data(), key.size()});
}

}  // namespace

MessageCursor::MessageCursor(Database& database, const StreamState& stream, Sequence end)
    : stream_(stream),
      end_key_(message_key(stream.id, end)),
      upper_bound_(end_key_.bytes.data(), end_key_.bytes.size()) {
  auto options = database.read_options();
  options.iterate_upper_bound = &upper_bound_;
  iterators_[0].reset(database.db().NewIterator(options, database.messages()));
  if (stream.last_transient > 0) {
    iterators_[1].reset(database.db().NewIterator(options, database.transient()));
  }
}

void MessageCursor::seek(Sequence from) {
  position(from);
  while (at_ && settled(sequence())) position(run_.end);
}

Sequence MessageCursor::sequence() const {
  return key_sequence(*at_);
}

std::string_view MessageCursor::bytes() const {
  const rocksdb::Slice value = at_->value();
  return {value.data(), value.size()};
}

rocksdb::Status MessageCursor::status() const {
  for (const auto& iterator : iterators_) {
    if (iterator && !iterator->status().ok()) return iterator->status();
  }
  return rocksdb::Status::OK();
}

void MessageCursor::position(Sequence from) {
  at_ = nullptr;
  for (const auto& iterator : iterators_) {
    if (!iterator) continue;
    if (!placed_) {
      jump(*iterator, from);
    } else if (iterator->Valid()) {  // one that has reached its end stays there
      advance(*iterator, from);
    }
    if (iterator->Valid() && (!at_ || key_sequence(*iterator) < sequence())) at_ = iterator.get();
  }
  placed_ = true;
}

void MessageCursor::advance(rocksdb::Iterator& iterator, Sequence from) const {
  for (std::uint64_t step = 0; iterator.Valid() && key_sequence(iterator) < from; ++step) {
    if (step == kStepsWorthASeek) {
      jump(iterator, from);
      return;
    }
    iterator.Next();
  }
}

void MessageCursor::jump(rocksdb::Iterator& iterator, Sequence from) const {
  const MessageKey key = message_key(stream_.id, from);
  iterator.Seek({key.bytes.data(), key.bytes.size()});
}

bool MessageCursor::settled(Sequence sequence) {
  if (sequence >= run_.end) run_ = stream_.live_run_at(sequence);
  return run_.settled;
}

}  // namespace stoat::store
