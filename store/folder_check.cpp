#include "store/folder_check.hpp"

#include "store/damaged_database.hpp"
#include "store/data_folder.hpp"

namespace stoat::store {

FolderReport check_folder(const RocksOptions& options, const std::string& scratch_dir,
                          const FolderContents::IsWhole& is_whole) {
  rocksdb::Env& env = options.env ? *options.env : *rocksdb::Env::Default();
  const DataFolder folder(env, options.data_dir, DataFolder::Use::look);
  const std::string dir = folder.database_dir();
  if (has_no_data(env, dir)) return {};
  DamagedDatabase database(env, dir, scratch_dir);
  FolderContents contents(database);
  contents.read_bodies(is_whole, [](const auto&, const auto&) {});
  contents.read_messages(is_whole, [](const auto&, const auto&) {});
  return contents.report();
}

}  // namespace stoat::store
