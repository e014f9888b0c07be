#include "tests/support/frame_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/endian.hpp"
#include "tests/support/method_names.hpp"

namespace stoat::test {
namespace {

constexpr milliseconds kSendLimit{20'000};
constexpr std::size_t kReadBytes = 256 * 1024;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::string describe(const Frame& frame) {
  using Kind = wire::FrameDecoder::Kind;
  std::string text;
  switch (frame.kind) {
    case Kind::method:
      text = describe_method(*frame.payload);
      break;
    case Kind::header:
      text = "a content header";
      break;
    case Kind::body:
      text = "a body frame of " + std::to_string(frame.payload->size()) + " bytes";
      break;
    case Kind::heartbeat:
      text = "a heartbeat";
      break;
    case Kind::need_more:
    case Kind::error:
      text = "no frame";
      break;
  }
  return text + " on channel " + std::to_string(frame.channel);
}

FrameSocket::FrameSocket(std::uint16_t port) : decoder_(std::numeric_limits<std::uint32_t>::max()) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close();
    throw std::system_error(error, std::generic_category(),
                            "connect to port " + std::to_string(port));
  }
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

FrameSocket::~FrameSocket() {
  close();
}

FrameSocket::FrameSocket(FrameSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      input_(std::move(other.input_)),
      taken_(std::exchange(other.taken_, 0)),
      ended_(other.ended_),
      decoder_(std::move(other.decoder_)) {}

bool FrameSocket::wait(short events, TestClock::time_point deadline, bool& writable) {
  const auto left =
      std::chrono::duration_cast<milliseconds>(deadline - TestClock::now()) + milliseconds(1);
  pollfd entry{fd_, events, 0};
  const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
  if (ready < 0 && errno != EINTR) fail("poll");
  if (ready <= 0) return TestClock::now() < deadline;
  writable = (entry.revents & POLLOUT) != 0;
  if (entry.revents & (POLLIN | POLLHUP | POLLERR)) read_some();
  return true;
}

void FrameSocket::read_some() {
  if (taken_ == input_.size()) {
    input_.clear();
    taken_ = 0;
  } else if (taken_ > kReadBytes) {
    input_.erase(0, taken_);
    taken_ = 0;
  }
  const std::size_t before = input_.size();
  input_.resize(before + kReadBytes);
  const ssize_t count = recv(fd_, input_.data() + before, kReadBytes, MSG_DONTWAIT);
  input_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) ended_ = true;
}

bool FrameSocket::send(std::string_view bytes) {
  const auto deadline = TestClock::now() + kSendLimit;
  while (!bytes.empty()) {
    if (ended_ || fd_ < 0) return false;
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    bool writable = false;
    if (!wait(POLLIN | POLLOUT, deadline, writable))
      throw std::runtime_error("the peer took no bytes for " + std::to_string(kSendLimit.count()) +
                               " ms, " + std::to_string(bytes.size()) + " left to send");
  }
  return true;
}

bool FrameSocket::next_frame(Frame& frame) {
  const std::string_view held = std::string_view(input_).substr(taken_);
  if (held.size() < wire::kFrameHeaderBytes) return false;
  const std::size_t size = wire::kFrameOverheadBytes + load_big<std::uint32_t>(held.data() + 3);
  if (held.size() < size) return false;
  // Given a whole frame, the decoder makes one event of it, body frames included.
  std::string_view whole = held.substr(0, size);
  const auto event = decoder_.next(whole);
  if (event.kind == wire::FrameDecoder::Kind::error)
    throw std::runtime_error("the broker sent a bad frame: " + std::string(event.error_text));
  frame.kind = event.kind;
  frame.channel = event.channel.value;
  frame.payload = std::make_shared<const std::string>(event.payload);
  taken_ += size;
  return true;
}

FrameSocket::Arrival FrameSocket::receive(Frame& frame, milliseconds limit) {
  const auto deadline = TestClock::now() + limit;
  while (true) {
    if (next_frame(frame)) return Arrival::frame;
    if (ended_ || fd_ < 0) return Arrival::ended;
    bool writable = false;
    if (!wait(POLLIN, deadline, writable)) return Arrival::timeout;
  }
}

std::string FrameSocket::receive_bytes(std::size_t count, milliseconds limit) {
  const auto deadline = TestClock::now() + limit;
  bool writable = false;
  while (input_.size() - taken_ < count && !ended_ && fd_ >= 0) {
    if (!wait(POLLIN, deadline, writable)) break;
  }
  const std::string bytes = input_.substr(taken_, count);
  taken_ += bytes.size();
  return bytes;
}

bool FrameSocket::receive_end(milliseconds limit) {
  const auto deadline = TestClock::now() + limit;
  bool writable = false;
  while (!ended_ && fd_ >= 0) {
    taken_ = input_.size();
    if (!wait(POLLIN, deadline, writable)) return false;
  }
  return true;
}

void FrameSocket::shutdown_send() {
  ::shutdown(fd_, SHUT_WR);
}

void FrameSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void FrameSocket::reset() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

}  // namespace stoat::test
