#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stoat::bench {

// Waits for many sockets at once.
//
// Owner: one thread of stoat-perf. Thread: its owner's.
class PerfPoller {
 public:
  PerfPoller();
  ~PerfPoller();
  PerfPoller(const PerfPoller&) = delete;
  PerfPoller& operator=(const PerfPoller&) = delete;

  // Its readiness to be read is told as `index` from now on.
  void add(int fd, std::uint32_t index);
  // Which kinds of readiness count from now on.
  void want(int fd, std::uint32_t index, bool read, bool write);
  // What is ready, at most timeout_ns later. Valid until the next call.
  std::span<const epoll_event> wait(std::int64_t timeout_ns);

 private:
  int fd_;
  std::array<epoll_event, 256> events_;
};

}  // namespace stoat::bench
