#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace stoat::test {

// How a process ended: exit status, or the signal that ended it.
struct ExitStatus {
  bool exited = false;
  int code = 0;
  int signal = 0;
};

// The real stoatd in a process of its own, on a data folder that outlives it: to be killed, stopped
// and started again. Its log goes to a file in the folder's neighbourhood.
//
// Owner: one test. Thread: one.
// Errors: std::runtime_error when it does not come up, with its log.
class BrokerProcess {
 public:
  struct Options {
    std::filesystem::path data_dir;  // empty: a fresh one
    std::vector<std::string> arguments;
    bool wait_until_listening = true;
    int descriptor_limit = 0;  // 0: that of the test
  };

  BrokerProcess() : BrokerProcess(Options{}) {}
  explicit BrokerProcess(Options options);
  ~BrokerProcess();
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  const std::filesystem::path& data_dir() const { return data_dir_; }
  // All that it has logged since its last start.
  std::string log() const;

  // SIGKILL; returns when it is gone.
  void kill9();
  // SIGTERM; waits for its end.
  ExitStatus terminate();
  // Waits for an end that comes by itself.
  ExitStatus wait();
  // Starts it again on the same folder. REQUIRES: it is not running.
  void start();

 private:
  void wait_until_listening();

  TempDir folder_;
  std::filesystem::path data_dir_;
  std::filesystem::path log_file_;
  std::vector<std::string> arguments_;
  bool wait_until_listening_;
  int descriptor_limit_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace stoat::test
