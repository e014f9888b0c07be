#include "store/flush_filter.hpp"

#include <optional>
#include <string>

#include "rocksdb/slice.h"
#include "store/key_layout.hpp"

namespace stoat::store {
namespace {

class FlushFilter final : public rocksdb::CompactionFilter {
 public:
  explicit FlushFilter(std::shared_ptr<const StreamTable> streams) : streams_(std::move(streams)) {}

  const char* Name() const override { return "stoat.flush-filter"; }

  Decision FilterV2(int, const rocksdb::Slice& key, ValueType, const rocksdb::Slice&, std::string*,
                    std::string* skip_until) const override {
    const std::string_view view(key.data(), key.size());
    if (!is_message_key(view)) return Decision::kKeep;
    const StreamId id = stream_of(view);
    if (id != current_id_) enter(id);

    if (found_.fate == StreamTable::Fate::deleted) {
      *skip_until = message_key_after(id.queue).view();
      return Decision::kRemoveAndSkipUntil;
    }
    if (!found_.stream) return Decision::kKeep;

    const Sequence sequence = sequence_of(view);
    if (sequence < alive_until_) return Decision::kKeep;
    const SettledRun run = found_.stream->synced_run_at(sequence);
    if (!run.settled) {
      alive_until_ = run.end;
      return Decision::kKeep;
    }
    *skip_until = message_key(id, run.end).view();
    return Decision::kRemoveAndSkipUntil;
  }

 private:
  void enter(StreamId id) const {
    found_ = streams_->find(id);
    current_id_ = id;
    alive_until_ = Sequence{0};
  }

  std::shared_ptr<const StreamTable> streams_;
  // Keys come in order, by one thread: the stream of the last one is nearly always that of the
  // next. A message settled since its run was looked up is kept once more.
  mutable std::optional<StreamId> current_id_;
  mutable StreamTable::Found found_;
  mutable Sequence alive_until_;
};

}  // namespace

bool FlushFilterFactory::ShouldFilterTableFileCreation(
    rocksdb::TableFileCreationReason reason) const {
  return reason == rocksdb::TableFileCreationReason::kFlush ||
         reason == rocksdb::TableFileCreationReason::kCompaction;
}

std::unique_ptr<rocksdb::CompactionFilter> FlushFilterFactory::CreateCompactionFilter(
    const rocksdb::CompactionFilter::Context&) {
  return std::make_unique<FlushFilter>(streams_);
}

}  // namespace stoat::store
