#include "tests/store/rocks_fixture.hpp"

#include <algorithm>

#include "rocksdb/db.h"
#include "rocksdb/table_properties.h"

namespace stoat::store::testing {
namespace {

// The database as it lies there, read only and without its log.
class Inspector {
 public:
  Inspector(rocksdb::Env& env, const std::string& dir) {
    rocksdb::DBOptions options;
    options.env = &env;
    std::vector<std::string> names;
    check(rocksdb::DB::ListColumnFamilies(options, dir, &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::OpenForReadOnly(options, dir, families, &handles_, &db));
    db_.reset(db);
  }
  ~Inspector() {
    for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  }

  rocksdb::DB& db() { return *db_; }
  rocksdb::ColumnFamilyHandle* family(const std::string& name) const {
    for (auto* handle : handles_) {
      if (handle->GetName() == name) return handle;
    }
    throw std::runtime_error("no family " + name);
  }
  static void check(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

 private:
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

RocksFixture::TableContents RocksFixture::tables(const std::string& family) const {
  Inspector inspector(*env_, kDatabaseDir);
  rocksdb::TablePropertiesCollection collection;
  Inspector::check(inspector.db().GetPropertiesOfAllTables(inspector.family(family), &collection));
  TableContents contents;
  for (const auto& [name, properties] : collection) {
    contents.entries += properties->num_entries;
    contents.deletions += properties->num_deletions + properties->num_range_deletions;
    contents.bytes += properties->data_size;
  }
  return contents;
}

std::vector<std::string> RocksFixture::table_names(const std::string& family) const {
  Inspector inspector(*env_, kDatabaseDir);
  std::vector<rocksdb::LiveFileMetaData> live;
  inspector.db().GetLiveFilesMetaData(&live);
  std::vector<std::string> names;
  for (const auto& file : live) {
    if (file.column_family_name == family) names.push_back("/" + file.relative_filename);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t RocksFixture::queue_keys() const {
  Inspector inspector(*env_, kDatabaseDir);
  std::unique_ptr<rocksdb::Iterator> at(
      inspector.db().NewIterator(rocksdb::ReadOptions(), inspector.family("queues")));
  std::size_t keys = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) ++keys;
  return keys;
}

}  // namespace stoat::store::testing
