#include "broker/alarms.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fstream>
#include <limits>
#include <sstream>

#include "broker/log.hpp"

namespace stoat::broker {

namespace {

constexpr std::chrono::seconds kCheckInterval{1};

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
  const bool anybody = std::any_of(workers_.begin(), workers_.end(),
                                   [](const Worker* w) { return w->connection_count() > 0; });
  if (!anybody && alarm_.empty()) return;
  watch();
}

void Alarms::watch() {
  watching_ = true;
  timer_.expires_after(kCheckInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) run();
  });
}

}  // namespace stoat::broker
