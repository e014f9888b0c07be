#include "bench/perf_process.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace stoat::bench {
namespace {

// Of /proc/PID/stat, whose second field is a name in brackets that may hold anything.
double cpu_seconds_in(const std::string& stat) {
  const auto bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream fields(stat.substr(bracket + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double megabytes_in(const std::string& status, const std::string& key) {
  const auto at = status.find('\n' + key + ':');
  if (at == std::string::npos) return 0;
  return std::strtod(status.c_str() + at + key.size() + 2, nullptr) / 1024;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

PerfProcess PerfProcess::look(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string status = read_file(folder + "/status");
  return {cpu_seconds_in(read_file(folder + "/stat")), megabytes_in(status, "VmRSS"),
          megabytes_in(status, "VmHWM")};
}

}  // namespace stoat::bench
