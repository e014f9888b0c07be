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
    : database_(database),
      stream_(stream),
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
  while (at_) {
    if (settled(sequence())) {
      position(run_.end);
    } else if (fetch()) {
      return;
    } else if (body_status_.ok()) {  // settled meanwhile
      position(sequence().next());
    } else {
      at_ = nullptr;
    }
  }
}

Sequence MessageCursor::sequence() const {
  return key_sequence(*at_);
}

// False: the message was settled meanwhile, or its body cannot be had (body_status_).
bool MessageCursor::fetch() {
  const rocksdb::Slice key = at_->key();
  const rocksdb::Slice value = at_->value();
  bytes_ = {value.data(), value.size()};
  if (!is_reference_key({key.data(), key.size()})) return true;
  const auto reference = decode_reference(bytes_);
  if (reference) return fetch_body(*reference);
  body_status_ = rocksdb::Status::Corruption("a body reference is malformed");
  return false;
}

bool MessageCursor::fetch_body(const BodyReference& reference) {
  body_.Reset();
  const BodyKey key = body_key(reference.body);
  auto status = database_.db().Get(rocksdb::ReadOptions(), database_.bodies(),
                                   {key.bytes.data(), key.bytes.size()}, &body_);
  if (status.ok()) {
    const auto body = BodyView::parse({body_.data(), body_.size()});
    if (body && body->bytes().size() == reference.size) {
      bytes_ = body->bytes();
      return true;
    }
    status = rocksdb::Status::Corruption("a body is malformed");
  }
  // A body goes when the last who shares it is settled, also under an iterator that still sees the
  // reference.
  if (stream_.deleted || stream_.is_settled(sequence())) return false;
  if (status.IsNotFound()) status = rocksdb::Status::Corruption("a body is missing");
  body_status_ = status;
  return false;
}

rocksdb::Status MessageCursor::status() const {
  if (!body_status_.ok()) return body_status_;
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
