#include "bench/perf_idle.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/perf_connection.hpp"

namespace stoat::bench {
namespace {

constexpr int kPoll_ms = 100;

void allow_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

void wait_for_end(const std::atomic<bool>& interrupted) {
  std::array<char, 256> dropped;
  while (!interrupted) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kPoll_ms) <= 0) continue;
    if (::read(STDIN_FILENO, dropped.data(), dropped.size()) <= 0) return;
  }
}

bool still_open(PerfConnection& connection) {
  std::array<char, 4096> scratch;
  try {
    connection.read(scratch, [](const PerfConnection::Event& event) {
      if (event.kind == wire::FrameDecoder::Kind::method)
        PerfConnection::check_not_closed(event.payload);
    });
  } catch (const PerfError&) {
    return false;
  }
  return true;
}

}  // namespace

int hold_idle_connections(const PerfOptions& options, const std::atomic<bool>& interrupted) {
  allow_many_files();
  std::vector<std::unique_ptr<PerfConnection>> connections;
  while (static_cast<int>(connections.size()) < options.idle_connections && !interrupted) {
    const std::string name = "stoat-perf idle " + std::to_string(connections.size());
    connections.push_back(std::make_unique<PerfConnection>(options.uri, name));
  }
  std::printf("%zu connections open\n", connections.size());
  std::fflush(stdout);
  wait_for_end(interrupted);
  const auto open = std::count_if(connections.begin(), connections.end(),
                                  [](auto& connection) { return still_open(*connection); });
  std::printf("%zu of %zu connections still open\n", static_cast<std::size_t>(open),
              connections.size());
  return open == options.idle_connections ? 0 : 1;
}

}  // namespace stoat::bench
