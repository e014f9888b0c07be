#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "broker/config.hpp"
#include "broker/worker.hpp"

namespace stoat::broker {

// Watches memory and free disk, and tells every worker when publishers have to be held back. When
// most of the connections have left, it gives the memory they had back to the machine: the
// allocator keeps it otherwise.
// Owner: Server. Thread: worker 0's, save check() before the workers run.
// Wakes up once a second while there are connections, not otherwise.
class Alarms {
 public:
  Alarms(const Config& config, std::vector<Worker*> workers);

  void start();
  void stop();
  // On worker 0's thread: somebody connected, so there is something to watch for.
  void wake();

  // What the machine says now; empty when all is well.
  std::string check() const;

 private:
  void run();
  void watch();
  void give_memory_back(std::size_t connections);

  const std::filesystem::path data_dir_;
  const std::uint64_t memory_limit_bytes_;
  const std::uint64_t disk_free_limit_bytes_;
  std::vector<Worker*> workers_;
  asio::steady_timer timer_;
  std::string alarm_;
  std::size_t most_connections_ = 0;  // since memory was given back
  bool watching_ = false;
  bool stopped_ = false;
};

// Of the machine, or of the control group that the process is confined to.
std::uint64_t memory_total_bytes();
std::uint64_t memory_used_bytes();  // resident, by this process

}  // namespace stoat::broker
