#pragma once

#include <filesystem>
#include <string>

namespace stoat::broker {

// All bytes of a file, none of an empty one. Throws std::system_error, whose code says why it
// cannot be read.
std::string read_whole_file(const std::filesystem::path& file);

}  // namespace stoat::broker
