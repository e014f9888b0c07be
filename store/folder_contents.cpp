#include "store/folder_contents.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace stoat::store {
namespace {

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace

FolderContents::FolderContents(DamagedDatabase& database) : database_(database) {
  read_meta();
  for (const auto& [key, value] : database_.queues()) read_queue_key(key, value);
  drop_streams_without_queue();
}

void FolderContents::read_meta() {
  const auto& meta = database_.meta();
  const auto format = meta.find(std::string(kFormatKey));
  if (format != meta.end() && !is_known_format(format->second)) {
    malformed("default", "the format is " + format->second);
  }
  const auto next = meta.find(std::string(kNextQueueIdKey));
  if (next == meta.end()) return;
  const std::string& text = next->second;
  std::uint64_t id = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    malformed("default", "next_queue_id is no number");
    return;
  }
  next_queue_id_ = QueueId{id};
}

// A record comes before the chunks of its stream: keys are in order.
void FolderContents::read_queue_key(std::string_view key, std::string_view value) {
  const auto parsed = parse_queue_key(key);
  if (!parsed) return malformed(kQueuesFamily, "a key is malformed");
  next_queue_id_ = std::max(next_queue_id_, parsed->queue.next());
  if (parsed->kind == QueueKeyKind::queue) {
    const bool deleted = value == std::string_view(&kQueueDeleted, 1);
    (deleted ? deleted_ : alive_).insert(parsed->queue);
    return;
  }
  const std::string whose = " of queue " + std::to_string(parsed->queue.value) + " is malformed";
  Stream& stream = streams_[{parsed->queue, parsed->stream}];
  if (parsed->kind == QueueKeyKind::record) {
    stream.record = decode_record(value);
    if (!stream.record) return malformed(kQueuesFamily, "the record" + whose);
    stream.settled.restore_watermark(stream.record->watermark);
  } else if (!stream.settled.restore_chunk(parsed->chunk, value)) {
    malformed(kQueuesFamily, "a chunk" + whose);
  }
}

void FolderContents::drop_streams_without_queue() {
  const bool queues_whole = database_.queues_whole();
  std::erase_if(streams_, [&](const auto& entry) {
    const QueueId queue = entry.first.first;
    if (deleted_.contains(queue)) return true;
    if (alive_.contains(queue)) return false;
    if (queues_whole) malformed(kQueuesFamily, "a record without its queue");
    return false;  // something of it is there
  });
}

bool FolderContents::takes(const StreamId& id) const {
  if (deleted_.contains(id.queue)) return false;
  return alive_.contains(id.queue) || !database_.queues_whole();
}

void FolderContents::read_bodies(const IsWhole& is_whole, const OnEntry& on_body) {
  database_.read(kBodiesFamily, {}, [&](const rocksdb::Slice& key, const rocksdb::Slice& value) {
    const auto id = parse_body_key(view(key));
    const auto body = BodyView::parse(view(value));
    if (!id || !body || (is_whole && !is_whole(body->bytes()))) {
      return malformed(kBodiesFamily, "a body is malformed");
    }
    if (bodies_.emplace(*id, body->bytes().size()).second) on_body(key, value);
  });
}

// Of a message's bytes, wherever they are; nullopt: they cannot be had.
std::optional<std::uint64_t> FolderContents::size_of(std::string_view key, std::string_view value,
                                                     const IsWhole& is_whole) const {
  if (!is_reference_key(key)) {
    return is_whole && !is_whole(value) ? std::nullopt : std::optional(std::uint64_t{value.size()});
  }
  const auto reference = decode_reference(value);
  if (!reference) return std::nullopt;
  const auto body = bodies_.find(reference->body);
  const bool there = body != bodies_.end() && body->second == reference->size;
  return there ? std::optional(reference->size) : std::nullopt;
}

void FolderContents::read_messages(const IsWhole& is_whole, const OnEntry& on_alive) {
  std::vector<std::string> starts;
  for (const auto& [id, stream] : streams_) {
    const auto key = message_key({id.first, id.second}, stream.settled.watermark());
    starts.emplace_back(key.view());
  }
  database_.read(kMessagesFamily, starts, [&](const auto& key, const auto& value) {
    if (!is_message_key(view(key))) return malformed(kMessagesFamily, "a key is malformed");
    const StreamId id = stream_of(view(key));
    const Sequence sequence = sequence_of(view(key));
    if (sequence.value == 0) return malformed(kMessagesFamily, "a key is malformed");
    if (!takes(id)) return;
    Stream& stream = streams_[{id.queue, id.stream}];
    if (stream.settled.contains(sequence) || stream.seen.contains(sequence)) return;
    const auto size = size_of(view(key), view(value), is_whole);
    if (!size) {
      return malformed(kMessagesFamily, "message " + std::to_string(sequence.value) + " of queue " +
                                            std::to_string(id.queue.value) +
                                            " is malformed, or has lost its body");
    }
    next_queue_id_ = std::max(next_queue_id_, id.queue.next());
    stream.seen.insert(sequence, sequence);
    stream.count += 1;
    stream.bytes += *size;
    on_alive(key, value);
  });
}

FolderReport FolderContents::report() const {
  FolderReport report;
  report.damage = database_.damage();
  report.topology.assign(database_.topology().begin(), database_.topology().end());
  for (const auto& [id, stream] : streams_) {
    FolderReport::Stream told{{id.first, id.second}, {}, stream.count, stream.bytes};
    if (stream.record) told.counted = stream.record->count;
    report.streams.push_back(told);
  }
  return report;
}

void FolderContents::malformed(const char* family, const std::string& what) {
  database_.add_damage(database_.dir() + " (family " + family + ")", what);
}

}  // namespace stoat::store
