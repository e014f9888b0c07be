#include "store/salvage.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "rocksdb/listener.h"
#include "store/damaged_database.hpp"
#include "store/database.hpp"
#include "store/folder_contents.hpp"
#include "store/key_layout.hpp"

namespace stoat::store {
namespace {

constexpr std::size_t kBatchBytes = 1u << 20;

rocksdb::Slice slice(std::string_view view) {
  return {view.data(), view.size()};
}

// The new database, written past its log and flushed at the end.
class Copy {
 public:
  Copy(const RocksOptions& options, const std::string& dir, bool records_whole)
      : records_whole_(records_whole),
        database_(options, dir, std::make_shared<StreamTable>(),
                  std::make_shared<rocksdb::EventListener>()) {}

  void put(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
           const rocksdb::Slice& value) {
    check(batch_.Put(family, key, value));
    if (batch_.GetDataSize() >= kBatchBytes) write();
  }
  void put_message(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    put(database_.messages(), key, value);
  }
  void put_body(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    put(database_.bodies(), key, value);
  }
  void put_definitions(const DamagedDatabase::Family& topology) {
    for (const auto& [key, json] : topology) put(database_.topology(), key, json);
  }
  void put_streams(const FolderContents& contents) {
    for (const auto& [id, stream] : contents.streams()) put_stream({id.first, id.second}, stream);
    put(database_.meta(), slice(kFormatKey), std::to_string(kFormatVersion));
    put(database_.meta(), slice(kNextQueueIdKey), std::to_string(contents.next_queue_id().value));
  }
  void finish() {
    write();
    check(database_.db().Flush({}, {database_.meta(), database_.topology(), database_.queues(),
                                    database_.messages(), database_.bodies()}));
  }

 private:
  // Where records are lost, one that is there may be an old one: what is not known to be settled
  // comes back, and all of it may have been delivered.
  void put_stream(StreamId id, const FolderContents::Stream& stream) {
    StreamRecord record = stream.record.value_or(StreamRecord{});
    if (!records_whole_) {
      record.reserved_next =
          std::max({record.reserved_next, stream.seen.settled_end(), stream.settled.settled_end()});
      record.delivered_ceiling = Sequence{record.reserved_next.value - 1};
    }
    record.count = stream.count;
    record.bytes = stream.bytes;
    const auto encoded = encode_record(record);
    put(database_.queues(), slice(queue_key(id.queue).view()), {&kQueueAlive, 1});
    put(database_.queues(), slice(record_key(id).view()), {encoded.data(), encoded.size()});
    for (const std::uint64_t chunk : stream.settled.persisted_chunks()) {
      if (!stream.settled.has_chunk(chunk)) continue;
      put(database_.queues(), slice(chunk_key(id, chunk).view()),
          stream.settled.encode_chunk(chunk));
    }
  }

  void write() {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    check(database_.db().Write(options, &batch_));
    batch_.Clear();
  }
  void check(const rocksdb::Status& status) const {
    if (status.ok()) return;
    throw StoreOpenError("cannot write the salvaged copy to " + database_.dir() + ": " +
                         status.ToString());
  }

  const bool records_whole_;
  Database database_;
  rocksdb::WriteBatch batch_;
};

}  // namespace

std::optional<FolderReport> salvage_folder(const RocksOptions& options, DataFolder& folder) {
  rocksdb::Env& env = options.env ? *options.env : *rocksdb::Env::Default();
  if (has_no_data(env, folder.database_dir())) return std::nullopt;
  DamagedDatabase damaged(env, folder.database_dir(), folder.scratch_dir());
  FolderContents contents(damaged);
  if (damaged.damage().empty()) return std::nullopt;
  folder.begin_salvage();
  {
    RocksOptions fresh = options;
    fresh.salvage = false;
    Copy copy(fresh, folder.salvage_dir(), damaged.records_whole());
    contents.read_bodies({},
                         [&](const auto& key, const auto& value) { copy.put_body(key, value); });
    contents.read_messages(
        {}, [&](const auto& key, const auto& value) { copy.put_message(key, value); });
    copy.put_definitions(damaged.topology());
    copy.put_streams(contents);
    copy.finish();
  }
  FolderReport report = contents.report();
  report.kept_aside = folder.exchange_for_salvaged();
  return report;
}

}  // namespace stoat::store
