#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace stoat::test {

// A figure from /proc/PID/status in kilobytes: "VmRSS", "VmHWM" (the most it ever was).
std::uint64_t memory_kb(pid_t pid, const std::string& figure);

// Of all files below the folder; one that goes meanwhile counts as nothing.
std::uint64_t disk_bytes(const std::filesystem::path& dir);

}  // namespace stoat::test
