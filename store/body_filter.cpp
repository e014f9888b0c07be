#include "store/body_filter.hpp"

#include <string>

#include "rocksdb/slice.h"
#include "store/shared_body.hpp"

namespace stoat::store {
namespace {

class BodyFilter final : public rocksdb::CompactionFilter {
 public:
  explicit BodyFilter(std::shared_ptr<const StreamTable> streams) : streams_(std::move(streams)) {}

  const char* Name() const override { return "stoat.body-filter"; }

  Decision FilterV2(int, const rocksdb::Slice& key, ValueType, const rocksdb::Slice& value,
                    std::string*, std::string* skip_until) const override {
    const auto id = parse_body_key({key.data(), key.size()});
    const auto body = BodyView::parse({value.data(), value.size()});
    if (!id || !body || !streams_->complete()) return Decision::kKeep;
    for (std::size_t i = 0; i < body->user_count(); ++i) {
      if (!is_done(body->user(i))) return Decision::kKeep;
    }
    *skip_until = body_key(id->next()).view();
    return Decision::kRemoveAndSkipUntil;
  }

 private:
  bool is_done(const BodyUser& user) const {
    const auto found = streams_->find(user.stream);
    if (found.fate != StreamTable::Fate::alive) return true;
    return found.stream && found.stream->synced_run_at(user.sequence).settled;
  }

  std::shared_ptr<const StreamTable> streams_;
};

}  // namespace

bool BodyFilterFactory::ShouldFilterTableFileCreation(
    rocksdb::TableFileCreationReason reason) const {
  return reason == rocksdb::TableFileCreationReason::kFlush ||
         reason == rocksdb::TableFileCreationReason::kCompaction;
}

std::unique_ptr<rocksdb::CompactionFilter> BodyFilterFactory::CreateCompactionFilter(
    const rocksdb::CompactionFilter::Context&) {
  return std::make_unique<BodyFilter>(streams_);
}

}  // namespace stoat::store
