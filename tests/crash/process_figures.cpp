#include "tests/crash/process_figures.hpp"

#include <fstream>
#include <stdexcept>

namespace stoat::test {

std::uint64_t memory_kb(pid_t pid, const std::string& figure) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(figure + ":")) return std::stoull(line.substr(figure.size() + 1));
  }
  throw std::runtime_error("no " + figure + " of process " + std::to_string(pid));
}

std::uint64_t disk_bytes(const std::filesystem::path& dir) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    std::error_code gone;
    const std::uint64_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace stoat::test
