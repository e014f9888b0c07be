#include "bench/perf_poller.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace stoat::bench {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

void check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

PerfPoller::PerfPoller() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  check(fd_, "epoll_create1");
  // Waits end when they are due, not up to 50 µs later.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
}

PerfPoller::~PerfPoller() {
  ::close(fd_);
}

void PerfPoller::add(int fd, std::uint32_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = index;
  check(::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void PerfPoller::want(int fd, std::uint32_t index, bool read, bool write) {
  epoll_event event{};
  if (read) event.events |= EPOLLIN;
  if (write) event.events |= EPOLLOUT;
  event.data.u32 = index;
  check(::epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
}

std::span<const epoll_event> PerfPoller::wait(std::int64_t timeout_ns) {
  const std::int64_t wait_ns = std::max<std::int64_t>(timeout_ns, 0);
  const timespec timeout{wait_ns / kSecond_ns, wait_ns % kSecond_ns};
  const int count =
      ::epoll_pwait2(fd_, events_.data(), static_cast<int>(events_.size()), &timeout, nullptr);
  if (count < 0 && errno == EINTR) return {};
  check(count, "epoll_pwait2");
  return {events_.data(), static_cast<std::size_t>(count)};
}

}  // namespace stoat::bench
