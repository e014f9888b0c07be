#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace stoat::test {

// A program that runs, with what it prints.
//
// Owner: one test. Thread: its owner's; reading blocks until the program prints or ends.
class Program {
 public:
  // `command_line` as a shell takes it.
  explicit Program(const std::string& command_line)
      : pipe_(::popen((command_line + " 2>&1").c_str(), "r")) {}
  ~Program() {
    if (pipe_ != nullptr) ::pclose(pipe_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // False: it ended without a line that contains text.
  bool read_until(const std::string& text) {
    while (const auto line = next_line())
      if (line->find(text) != std::string::npos) return true;
    return false;
  }
  // The exit status, once it has ended; everything it printed is in output() then.
  int wait() {
    while (next_line()) {
    }
    const int status = ::pclose(std::exchange(pipe_, nullptr));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& output() const { return output_; }
  // How many of the lines printed so far contain text.
  int count(const std::string& text) const {
    int found = 0;
    for (auto at = output_.find(text); at != std::string::npos; at = output_.find(text, at + 1))
      ++found;
    return found;
  }

 private:
  std::optional<std::string> next_line() {
    char buffer[512];
    if (pipe_ == nullptr || std::fgets(buffer, sizeof buffer, pipe_) == nullptr)
      return std::nullopt;
    output_ += buffer;
    return buffer;
  }

  FILE* pipe_;
  std::string output_;
};

}  // namespace stoat::test
