#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/folder_report.hpp"

namespace stoat::broker {

// What a look at a data folder found, in words: a line for each damaged file, then one for each
// queue with something in it or lost. Queues are called by their names where their definitions can
// be read.
std::vector<std::string> inspection_lines(const store::FolderReport& report);

// stoatd --check: looks at the folder and writes what it found to standard output. The exit status:
// 0 nothing is damaged, 1 something is. Throws store::StoreOpenError when it cannot be checked.
int check_data_folder(const std::filesystem::path& dir);

}  // namespace stoat::broker
