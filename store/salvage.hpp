#pragma once

#include <optional>

#include "store/data_folder.hpp"
#include "store/folder_report.hpp"
#include "store/open.hpp"

namespace stoat::store {

// Makes a damaged data folder usable again: writes all that can be read of db/ to a new database,
// and only when that is whole and on the disk puts it in the place of the damaged one, which is
// kept beside it under a name of its own. Records are made anew, so that counts are those of the
// messages that are there. nullopt: nothing was damaged, and nothing has been done.
//
// Interrupted before the exchange it has changed nothing but db.salvage/, which the next one begins
// anew; interrupted within, the next start completes it (DataFolder). Needs as much room as the
// messages take.
//
// Thread: the opening one. Throws StoreOpenError.
std::optional<FolderReport> salvage_folder(const RocksOptions& options, DataFolder& folder);

}  // namespace stoat::store
