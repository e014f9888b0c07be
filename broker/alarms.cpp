#include "broker/alarms.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "broker/log.hpp"

namespace stoat::broker {

namespace {

constexpr std::chrono::seconds kCheckInterval{1};
// So many connections are worth the work of giving back what half of them had.
constexpr std::size_t kManyConnections = 1000;

std::uint64_t read_number(const char* file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : 0;  // "max" is no number: no limit
}

}  // namespace

std::uint64_t memory_total_bytes() {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::uint64_t limit = read_number(file);
    if (limit > 0) total = std::min(total, limit);
  }
  return total;
}

std::uint64_t memory_used_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Alarms::Alarms(const Config& config, std::vector<Worker*> workers)
    : data_dir_(config.data_dir),
      memory_limit_bytes_(static_cast<std::uint64_t>(static_cast<double>(memory_total_bytes()) *
                                                     config.memory_alarm_fraction)),
      disk_free_limit_bytes_(config.disk_alarm_free_mb * 1'000'000),
      workers_(std::move(workers)),
      timer_(workers_.front()->io()) {}

std::string Alarms::check() const {
  std::string reason;
  if (memory_used_bytes() > memory_limit_bytes_) reason = "low on memory";
  std::error_code error;
  const auto space = std::filesystem::space(data_dir_, error);
  if (!error && space.available < disk_free_limit_bytes_) {
    reason += reason.empty() ? "low on disk" : " & disk";
  }
  return reason;
}

void Alarms::start() {
  asio::post(workers_.front()->io(), [this] { run(); });
}

void Alarms::stop() {
  asio::post(workers_.front()->io(), [this] {
    stopped_ = true;
    timer_.cancel();
  });
}

void Alarms::wake() {
  if (!watching_ && !stopped_) watch();
}

void Alarms::run() {
  watching_ = false;
  if (stopped_) return;
  const std::string now = check();
  if (now != alarm_) {
    alarm_ = now;
    if (alarm_.empty()) {
      log::info("alarm cleared: publishers go on");
    } else {
      log::warn("alarm: " + alarm_ + ", publishers are held back");
    }
    for (Worker* worker : workers_) worker->set_alarm(alarm_);
  }
  const std::size_t connections =
      std::accumulate(workers_.begin(), workers_.end(), std::size_t{0},
                      [](std::size_t sum, const Worker* w) { return sum + w->connection_count(); });
  give_memory_back(connections);
  if (connections == 0 && alarm_.empty()) return;
  watch();
}

// Takes some milliseconds, so not for every connection that leaves.
void Alarms::give_memory_back(std::size_t connections) {
  most_connections_ = std::max(most_connections_, connections);
  const bool all_left = connections == 0 && most_connections_ > 0;
  const bool most_left =
      most_connections_ >= kManyConnections && connections <= most_connections_ / 2;
  if (!all_left && !most_left) return;
  most_connections_ = connections;
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void Alarms::watch() {
  watching_ = true;
  timer_.expires_after(kCheckInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) run();
  });
}

}  // namespace stoat::broker
