#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endian.hpp"
#include "store/store.hpp"

// Every key and value on disk, in one place. Numbers in keys are big-endian, so that keys sort like
// what they number. A change of anything here is a new format version, see store/data_folder.hpp.
//
// Column family "default": what concerns the folder as a whole.
//
//   "format"         -> "2"
//   "next_queue_id"  -> decimal, above every queue id ever used
//   "clean"          -> "yes"; absent while the folder is in use, and after a crash
//
// Column family "topology": the key as handed in -> a JSON document.
//
// Column family "queues": for every queue a key that says it exists, and for each of its streams a
// record and the chunks of its settled set.
//
//    0               8    9    10                18
//   +---------------+----+
//   | queue id      | 00 |                              -> 'a' alive | 'd' deleted, range not yet
//   free
//   +---------------+----+----+
//   | queue id      | 01 | st |                         -> record
//   +---------------+----+----+-----------------+
//   | queue id      | 02 | st | chunk index     |       -> chunk, see SettledSet::encode_chunk
//   +---------------+----+----+-----------------+
//
//   record:
//    0            8               16                  24       32       40
//   +------------+---------------+-------------------+--------+--------+
//   | watermark  | reserved next | delivered ceiling | count  | bytes  |
//   +------------+---------------+-------------------+--------+--------+
//   watermark: the first sequence not settled; count and bytes: durable messages alive.
//
// Column families "messages" (durable) and "transient" (written without the log, emptied at start):
//
//    0               8    9                17
//   +---------------+----+-----------------+
//   | queue id      | st | sequence        |            -> the message's bytes, written once
//   +---------------+----+-----------------+----+
//   | queue id      | st | sequence        | 01 |       -> body reference (in "messages" alone)
//   +---------------+----+-----------------+----+
//
//   A message has one of the two. body reference:
//    0            8        16
//   +------------+--------+
//   | body id    | size   |                             size: of the message's bytes
//   +------------+--------+
//
// Column family "bodies": large messages that several queues share.
//
//    0               8
//   +---------------+
//   | body id       |                                   -> its references, then the message's bytes
//   +---------------+
//
//   references:
//    0        4               12   13                21
//   +--------+---------------+----+-----------------+-...
//   | count  | queue id      | st | sequence        | and so on, count times
//   +--------+---------------+----+-----------------+-...
//   They are all the body will ever have: it is dead once each of them is settled.
//
// Every entry of the write-ahead log begins with a mark (a WriteBatch's log data), see
// store/wal_check.hpp:
//
//    0        4            12           20                28              36
//   +--------+------------+------------+-----------------+---------------+
//   | "stoa" | epoch      | group      | synced group    | previous log  |
//   +--------+------------+------------+-----------------+---------------+
//   epoch: a random number of this opening of the folder; group: 1, 2, 3 ... of this epoch; synced
//   group: the highest one that was known to be on the disk when this one was written; previous
//   log: the number of the log file that holds the group before this one, 0 for an epoch's first
//   and where it is not known for sure.

namespace stoat::store {

// Format 1 knew no bodies; every folder of it is one of format 2 without any.
inline constexpr int kFormatVersion = 2;
inline constexpr int kOldestFormatVersion = 1;

inline bool is_known_format(std::string_view version) {
  for (int known = kOldestFormatVersion; known <= kFormatVersion; ++known) {
    if (version == std::to_string(known)) return true;
  }
  return false;
}

inline constexpr const char* kTopologyFamily = "topology";
inline constexpr const char* kQueuesFamily = "queues";
inline constexpr const char* kMessagesFamily = "messages";
inline constexpr const char* kTransientFamily = "transient";
inline constexpr const char* kBodiesFamily = "bodies";

inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kNextQueueIdKey = "next_queue_id";
inline constexpr std::string_view kCleanKey = "clean";
inline constexpr std::string_view kCleanValue = "yes";

template <std::size_t N>
struct Key {
  std::array<char, N> bytes;
  std::string_view view() const { return {bytes.data(), N}; }
};

using MessageKey = Key<17>;
using ReferenceKey = Key<18>;
using BodyKey = Key<8>;
using QueueKey = Key<9>;
using RecordKey = Key<10>;
using ChunkKey = Key<18>;

inline constexpr char kQueueAlive = 'a';
inline constexpr char kQueueDeleted = 'd';

enum class QueueKeyKind : char { queue = 0, record = 1, chunk = 2 };

inline MessageKey message_key(StreamId id, Sequence sequence) {
  MessageKey key;
  store_big(key.bytes.data(), id.queue.value);
  key.bytes[8] = static_cast<char>(id.stream);
  store_big(key.bytes.data() + 9, sequence.value);
  return key;
}

// The first key that no stream of this queue has.
inline MessageKey message_key_after(QueueId queue) {
  return message_key({queue.next(), 0}, Sequence{0});
}

inline constexpr char kReferenceMark = 1;

// Sorts right behind the message key it extends, so that a range of messages is one of either kind.
inline ReferenceKey reference_key(StreamId id, Sequence sequence) {
  ReferenceKey key;
  const MessageKey message = message_key(id, sequence);
  *std::copy(message.bytes.begin(), message.bytes.end(), key.bytes.begin()) = kReferenceMark;
  return key;
}

inline bool is_reference_key(std::string_view key) {
  return key.size() == sizeof(ReferenceKey) && key.back() == kReferenceMark;
}
// Of either kind.
inline bool is_message_key(std::string_view key) {
  return key.size() == sizeof(MessageKey) || is_reference_key(key);
}
inline StreamId stream_of(std::string_view message_key) {
  return {QueueId{load_big<std::uint64_t>(message_key.data())},
          static_cast<std::uint8_t>(message_key[8])};
}
inline Sequence sequence_of(std::string_view message_key) {
  return Sequence{load_big<std::uint64_t>(message_key.data() + 9)};
}

inline QueueKey queue_key(QueueId queue) {
  QueueKey key;
  store_big(key.bytes.data(), queue.value);
  key.bytes[8] = static_cast<char>(QueueKeyKind::queue);
  return key;
}

inline RecordKey record_key(StreamId id) {
  RecordKey key;
  store_big(key.bytes.data(), id.queue.value);
  key.bytes[8] = static_cast<char>(QueueKeyKind::record);
  key.bytes[9] = static_cast<char>(id.stream);
  return key;
}

inline ChunkKey chunk_key(StreamId id, std::uint64_t index) {
  ChunkKey key;
  store_big(key.bytes.data(), id.queue.value);
  key.bytes[8] = static_cast<char>(QueueKeyKind::chunk);
  key.bytes[9] = static_cast<char>(id.stream);
  store_big(key.bytes.data() + 10, index);
  return key;
}

// A key of the family "queues", taken apart.
struct ParsedQueueKey {
  QueueId queue;
  QueueKeyKind kind = QueueKeyKind::queue;
  std::uint8_t stream = 0;
  std::uint64_t chunk = 0;
};

inline std::optional<ParsedQueueKey> parse_queue_key(std::string_view key) {
  if (key.size() < sizeof(QueueKey)) return std::nullopt;
  ParsedQueueKey parsed;
  parsed.queue = QueueId{load_big<std::uint64_t>(key.data())};
  parsed.kind = static_cast<QueueKeyKind>(key[8]);
  if (key.size() > 9) parsed.stream = static_cast<std::uint8_t>(key[9]);
  switch (parsed.kind) {
    case QueueKeyKind::queue:
      return key.size() == sizeof(QueueKey) ? std::optional(parsed) : std::nullopt;
    case QueueKeyKind::record:
      return key.size() == sizeof(RecordKey) ? std::optional(parsed) : std::nullopt;
    case QueueKeyKind::chunk:
      if (key.size() != sizeof(ChunkKey)) return std::nullopt;
      parsed.chunk = load_big<std::uint64_t>(key.data() + 10);
      return parsed;
  }
  return std::nullopt;
}

// A stream's record as it stands on disk.
struct StreamRecord {
  Sequence watermark{1};
  Sequence reserved_next{1};
  Sequence delivered_ceiling{0};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

inline constexpr std::size_t kRecordSize = 40;

inline std::array<char, kRecordSize> encode_record(const StreamRecord& record) {
  std::array<char, kRecordSize> encoded;
  store_big(encoded.data(), record.watermark.value);
  store_big(encoded.data() + 8, record.reserved_next.value);
  store_big(encoded.data() + 16, record.delivered_ceiling.value);
  store_big(encoded.data() + 24, record.count);
  store_big(encoded.data() + 32, record.bytes);
  return encoded;
}

inline std::optional<StreamRecord> decode_record(std::string_view encoded) {
  if (encoded.size() != kRecordSize) return std::nullopt;
  StreamRecord record;
  record.watermark = Sequence{load_big<std::uint64_t>(encoded.data())};
  record.reserved_next = Sequence{load_big<std::uint64_t>(encoded.data() + 8)};
  record.delivered_ceiling = Sequence{load_big<std::uint64_t>(encoded.data() + 16)};
  record.count = load_big<std::uint64_t>(encoded.data() + 24);
  record.bytes = load_big<std::uint64_t>(encoded.data() + 32);
  return record;
}

inline constexpr std::string_view kMarkMagic = "stoa";
inline constexpr std::size_t kMarkSize = 36;

// What begins every entry of the write-ahead log.
struct GroupMark {
  std::uint64_t epoch = 0;
  std::uint64_t group = 0;
  std::uint64_t synced_group = 0;
  std::uint64_t previous_log = 0;
};

inline std::array<char, kMarkSize> encode_mark(const GroupMark& mark) {
  std::array<char, kMarkSize> encoded;
  kMarkMagic.copy(encoded.data(), kMarkMagic.size());
  store_big(encoded.data() + 4, mark.epoch);
  store_big(encoded.data() + 12, mark.group);
  store_big(encoded.data() + 20, mark.synced_group);
  store_big(encoded.data() + 28, mark.previous_log);
  return encoded;
}

inline std::optional<GroupMark> decode_mark(std::string_view encoded) {
  if (encoded.size() != kMarkSize || !encoded.starts_with(kMarkMagic)) return std::nullopt;
  return GroupMark{
      load_big<std::uint64_t>(encoded.data() + 4), load_big<std::uint64_t>(encoded.data() + 12),
      load_big<std::uint64_t>(encoded.data() + 20), load_big<std::uint64_t>(encoded.data() + 28)};
}

}  // namespace stoat::store
