#pragma once

#include "store/folder_contents.hpp"
#include "store/folder_report.hpp"
#include "store/open.hpp"

namespace stoat::store {

// Reads a data folder from end to end and tells what of it is damaged: checksums of the log and of
// every table, the form of every key and value. Of `options` it uses data_dir and env; `is_whole`
// judges a stored message's form. Changes nothing in the folder, so that one on a read-only disk
// can be checked as well; what it has to write goes to `scratch_dir`, which must not exist.
//
// Throws StoreOpenError when there is nothing to check or it cannot be read: the folder is absent,
// not one of ours, of a newer format, or in use by a broker.
FolderReport check_folder(const RocksOptions& options, const std::string& scratch_dir,
                          const FolderContents::IsWhole& is_whole);

}  // namespace stoat::store
