#include "store/recovery.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>

#include "store/error_text.hpp"
#include "store/key_layout.hpp"
#include "store/message_cursor.hpp"
#include "store/open.hpp"

namespace stoat::store {
namespace {

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

class Recovery {
 public:
  Recovery(Database& database, StreamTable& streams) : database_(database), streams_(streams) {}

  RecoveryResult run() {
    read_meta();
    read_topology();
    read_queues();
    read_last_body();
    return std::move(result_);
  }

 private:
  // A stream's keys as they come: its record, then, after all records of its queue, its chunks.
  struct Found {
    StreamId id;
    StreamRecord record;
    std::vector<std::pair<std::uint64_t, std::string>> chunks;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw StoreOpenError("damaged data in " + database_.dir() + ": " + what + kDamagedAdvice);
  }

  void check(const rocksdb::Status& status, const char* what) const {
    if (!status.ok()) refuse("cannot read " + std::string(what) + ": " + error_text(status));
  }

  std::optional<std::string> meta(std::string_view key) const {
    std::string value;
    const auto status = database_.db().Get(rocksdb::ReadOptions(), database_.meta(),
                                           {key.data(), key.size()}, &value);
    if (status.IsNotFound()) return std::nullopt;
    check(status, "the folder's own keys");
    return value;
  }

  void read_meta() {
    const auto format = meta(kFormatKey);
    if (format) check_format(*format);
    // A folder that never had a queue has been stopped as cleanly as can be.
    result_.recovered.clean = meta(kCleanKey) == kCleanValue || !format;
    result_.recovered.next_queue_id = QueueId{1};
    if (const auto next = meta(kNextQueueIdKey)) {
      std::uint64_t id = 0;
      const auto parsed = std::from_chars(next->data(), next->data() + next->size(), id);
      if (parsed.ec != std::errc() || parsed.ptr != next->data() + next->size()) {
        refuse("next_queue_id is no number");
      }
      result_.recovered.next_queue_id = QueueId{id};
    }
  }

  // One that was converted still says the old version here until the first write.
  void check_format(const std::string& format) const {
    if (is_known_format(format)) return;
    refuse("its format is " + format + ", its FORMAT file says " + std::to_string(kFormatVersion));
  }

  void read_topology() {
    std::unique_ptr<rocksdb::Iterator> at(
        database_.db().NewIterator(database_.read_options(), database_.topology()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      result_.recovered.topology.emplace_back(at->key().ToString(), at->value().ToString());
    }
    check(at->status(), "the topology");
  }

  void read_queues() {
    std::unique_ptr<rocksdb::Iterator> at(
        database_.db().NewIterator(database_.read_options(), database_.queues()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const auto key = parse_queue_key(view(at->key()));
      if (!key) refuse("a queue's key is malformed");
      read_queue_key(*key, view(at->value()));
    }
    check(at->status(), "the queues");
    finish_queue();
  }

  void read_last_body() {
    std::unique_ptr<rocksdb::Iterator> at(
        database_.db().NewIterator(rocksdb::ReadOptions(), database_.bodies()));
    at->SeekToLast();
    check(at->status(), "the last body");
    result_.next_body_id = BodyId{1};
    if (!at->Valid()) return;
    const auto last = parse_body_key(view(at->key()));
    if (!last) refuse("a body's key is malformed");
    result_.next_body_id = last->next();
  }

  void read_queue_key(const ParsedQueueKey& key, std::string_view value) {
    if (!found_.empty() && found_.front().id.queue != key.queue) finish_queue();
    auto& next_id = result_.recovered.next_queue_id;
    next_id = std::max(next_id, key.queue.next());
    switch (key.kind) {
      case QueueKeyKind::queue:
        if (value == std::string_view(&kQueueDeleted, 1)) {
          streams_.mark_deleted(key.queue);
          result_.deleted_queues.push_back(key.queue);
        } else {
          streams_.add_queue(key.queue);
        }
        return;
      case QueueKeyKind::record: {
        const auto record = decode_record(value);
        if (!record) refuse("a stream's record is malformed");
        found_.push_back({{key.queue, key.stream}, *record, {}});
        return;
      }
      case QueueKeyKind::chunk:
        for (Found& stream : found_) {
          if (stream.id.stream == key.stream) stream.chunks.emplace_back(key.chunk, value);
        }
        return;
    }
  }

  void finish_queue() {
    for (const Found& stream : found_) finish_stream(stream);
    found_.clear();
  }

  void finish_stream(const Found& found) {
    SettledSet settled;
    settled.restore_watermark(found.record.watermark);
    for (const auto& [index, encoded] : found.chunks) {
      if (!settled.restore_chunk(index, encoded)) refuse("a stream's settled chunk is malformed");
    }
    const Sequence after_last = found.record.count > 0 ? after_last_key(found.id) : Sequence{1};
    const Sequence next = std::max({found.record.reserved_next, settled.settled_end(),
                                    found.record.delivered_ceiling.next(), after_last});

    if (!streams_.knows(found.id.queue)) refuse("a stream's record without its queue's key");
    const auto stream = streams_.add_stream(found.id, next);
    stream->persistent = true;
    stream->record = found.record;
    stream->restore_watermark(found.record.watermark);
    for (const auto& [index, encoded] : found.chunks) stream->restore_chunk(index, encoded);
    settle_unstored(*stream, after_last);

    result_.alive_bytes += stream->record.bytes;
    result_.recovered.streams.push_back({found.id, stream->live().watermark(), next,
                                         found.record.delivered_ceiling, stream->record.count,
                                         stream->record.bytes});
  }

  Sequence after_last_key(StreamId id) const {
    std::unique_ptr<rocksdb::Iterator> at(
        database_.db().NewIterator(rocksdb::ReadOptions(), database_.messages()));
    const MessageKey highest = message_key(id, Sequence{~std::uint64_t{0}});
    at->SeekForPrev({highest.bytes.data(), highest.bytes.size()});
    check(at->status(), "a queue's last message");
    if (!at->Valid() || stream_of(view(at->key())) != id) return Sequence{1};
    return sequence_of(view(at->key())).next();
  }

  void settle_unstored(StreamState& stream, Sequence after_last) const {
    const Sequence next = stream.recovered_next;
    if (after_last < next) settle(stream, after_last, next);
    if (stream.record.count == 0) {
      settle(stream, Sequence{1}, next);
      return;
    }
    MessageCursor cursor(database_, stream, next);
    cursor.seek(stream.live().watermark());
    check(cursor.status(), "a queue's first message");
    settle(stream, Sequence{1}, cursor.valid() ? cursor.sequence() : next);
  }

  static void settle(StreamState& stream, Sequence begin, Sequence end) {
    if (begin >= end) return;
    const Sequence last{end.value - 1};
    stream.settle(begin, last);
    stream.publish(begin, last);
  }

  Database& database_;
  StreamTable& streams_;
  std::vector<Found> found_;  // of the queue being read
  RecoveryResult result_;
};

}  // namespace

RecoveryResult recover(Database& database, StreamTable& streams) {
  return Recovery(database, streams).run();
}

}  // namespace stoat::store
