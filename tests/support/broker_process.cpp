#include "tests/support/broker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace stoat::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStartLimit{30};
constexpr std::chrono::seconds kEndLimit{30};
constexpr std::chrono::milliseconds kPoll{2};
constexpr std::string_view kListening = "listening for AMQP on 127.0.0.1:";

// Unless a test asks for something else.
constexpr const char* kDefaults[][2] = {
    {"--amqp-port", "0"}, {"--admin-port", "0"}, {"--log-level", "info"}};

// Reaps pid when it has ended.
bool ended(pid_t pid, ExitStatus& status) {
  int raw = 0;
  const pid_t got = waitpid(pid, &raw, WNOHANG);
  if (got < 0) throw std::system_error(errno, std::generic_category(), "waitpid");
  if (got == 0) return false;
  status.exited = WIFEXITED(raw);
  status.code = status.exited ? WEXITSTATUS(raw) : 0;
  status.signal = WIFSIGNALED(raw) ? WTERMSIG(raw) : 0;
  return true;
}

}  // namespace

BrokerProcess::BrokerProcess(Options options)
    : data_dir_(options.data_dir.empty() ? folder_.path() / "data" : options.data_dir),
      log_file_(folder_.path() / "log"),
      arguments_(std::move(options.arguments)),
      wait_until_listening_(options.wait_until_listening),
      descriptor_limit_(options.descriptor_limit) {
  start();
}

BrokerProcess::~BrokerProcess() {
  if (pid_ > 0) kill9();
}

void BrokerProcess::start() {
  std::vector<std::string> words = {STOATD_PATH, "--data-dir", data_dir_.string()};
  for (const auto& flag : kDefaults) {
    if (std::find(arguments_.begin(), arguments_.end(), flag[0]) != arguments_.end()) continue;
    words.insert(words.end(), {flag[0], flag[1]});
  }
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  if (descriptor_limit_ > 0) {
    const std::string limited = "ulimit -n " + std::to_string(descriptor_limit_) + "; exec \"$@\"";
    words.insert(words.begin(), {"/bin/sh", "-c", limited, "sh"});
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_file_.c_str(),
                                   O_CREAT | O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  const int error = posix_spawn(&pid_, argv.front(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    pid_ = -1;
    throw std::system_error(error, std::generic_category(), "cannot run " STOATD_PATH);
  }
  if (wait_until_listening_) wait_until_listening();
}

void BrokerProcess::wait_until_listening() {
  const auto deadline = Clock::now() + kStartLimit;
  while (Clock::now() < deadline) {
    const std::string text = log();
    const auto at = text.find(kListening);
    if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
      port_ = static_cast<std::uint16_t>(std::stoul(text.substr(at + kListening.size())));
      return;
    }
    ExitStatus status;
    if (ended(pid_, status)) {
      pid_ = -1;
      throw std::runtime_error("stoatd ended at its start:\n" + text);
    }
    std::this_thread::sleep_for(kPoll);
  }
  throw std::runtime_error("stoatd does not listen after 30 s:\n" + log());
}

std::string BrokerProcess::log() const {
  std::ifstream in(log_file_);
  return {std::istreambuf_iterator<char>(in), {}};
}

void BrokerProcess::kill9() {
  ::kill(pid_, SIGKILL);
  wait();
}

ExitStatus BrokerProcess::terminate() {
  ::kill(pid_, SIGTERM);
  return wait();
}

ExitStatus BrokerProcess::wait() {
  const auto deadline = Clock::now() + kEndLimit;
  ExitStatus status;
  while (!ended(pid_, status)) {
    if (Clock::now() > deadline) throw std::runtime_error("stoatd does not end:\n" + log());
    std::this_thread::sleep_for(kPoll);
  }
  pid_ = -1;
  return status;
}

}  // namespace stoat::test
