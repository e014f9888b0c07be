#include "tests/broker/admin_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace stoat::test {

namespace {

// What should come takes this long at most; only failing tests wait for it.
constexpr int kReplyLimitMs = 15'000;
constexpr std::string_view kMask = "\x11\x22\x33\x44";

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

AdminSocket::AdminSocket(std::uint16_t port, int receive_buffer_bytes) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) fail("socket");
  if (receive_buffer_bytes > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fail("connect");
  }
}

AdminSocket::~AdminSocket() {
  close(fd_);
}

void AdminSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool AdminSocket::read_more() {
  pollfd ready{fd_, POLLIN, 0};
  const int count = poll(&ready, 1, kReplyLimitMs);
  if (count < 0) fail("poll");
  if (count == 0) throw std::runtime_error("nothing came in time");
  char buffer[64 * 1024];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  if (got < 0 && errno != ECONNRESET) fail("recv");
  if (got <= 0) return false;
  input_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

std::string AdminSocket::take(std::size_t count) {
  while (input_.size() < count) {
    if (!read_more()) throw std::runtime_error("the connection ended");
  }
  std::string taken = input_.substr(0, count);
  input_.erase(0, count);
  return taken;
}

std::string AdminSocket::receive_all() {
  while (read_more()) {
  }
  return std::exchange(input_, {});
}

AdminSocket::Response AdminSocket::ask(const std::string& request) {
  send(request);
  const std::string all = receive_all();
  Response response;
  const auto end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || end == std::string::npos) {
    throw std::runtime_error("no HTTP response: " + all);
  }
  response.status = std::stoi(all.substr(9, 3));
  response.head = all.substr(0, end + 2);
  response.body = all.substr(end + 4);
  return response;
}

int AdminSocket::upgrade(const std::string& fields) {
  send(
      "GET /ws HTTP/1.1\r\nHost: localhost:15672\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
      fields + "\r\n");
  for (;;) {
    const auto end = input_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const int status = std::stoi(input_.substr(9, 3));
      // The answer to this key in RFC 6455, section 1.3.
      if (status == 101 && input_.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") == std::string::npos) {
        throw std::runtime_error("wrong Sec-WebSocket-Accept: " + input_);
      }
      input_.erase(0, end + 4);
      return status;
    }
    if (!read_more()) throw std::runtime_error("the connection ended");
  }
}

int AdminSocket::Frame::close_code() const {
  if (opcode != kClose || payload.size() < 2) return 0;
  return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
}

void AdminSocket::send_frame(int opcode, std::string_view payload, bool last, bool masked) {
  std::string frame(1, static_cast<char>((last ? 0x80 : 0) | opcode));
  const int mask_bit = masked ? 0x80 : 0;
  // The shortest form that holds the length; any other is against the protocol.
  const int size_bytes = payload.size() < 126 ? 0 : payload.size() < 65536 ? 2 : 8;
  const auto first = size_bytes == 0 ? payload.size() : size_bytes == 2 ? 126u : 127u;
  frame += static_cast<char>(mask_bit | static_cast<int>(first));
  for (int shift = (size_bytes - 1) * 8; shift >= 0; shift -= 8) {
    frame += static_cast<char>(std::uint64_t{payload.size()} >> shift);
  }
  if (masked) frame += kMask;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    frame += masked ? static_cast<char>(payload[i] ^ kMask[i % kMask.size()]) : payload[i];
  }
  send(frame);
}

void AdminSocket::send_frame_head(int opcode, std::uint64_t size) {
  std::string head{static_cast<char>(0x80 | opcode), static_cast<char>(0xff)};
  for (int shift = 56; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift);
  head += kMask;
  send(head);
}

AdminSocket::Frame AdminSocket::receive_frame() {
  const std::string head = take(2);
  if ((head[0] & 0x80) == 0) throw std::runtime_error("a fragment came");
  std::uint64_t size = static_cast<unsigned char>(head[1]);
  const int size_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (size_bytes > 0) {
    size = 0;
    for (const char byte : take(static_cast<std::size_t>(size_bytes))) {
      size = size << 8 | static_cast<unsigned char>(byte);
    }
  }
  return {head[0] & 0x0f, take(size)};
}

std::string AdminSocket::receive_text() {
  for (;;) {
    Frame frame = receive_frame();
    if (frame.opcode == kText) return std::move(frame.payload);
    if (frame.opcode == kPing) {
      send_frame(kPong, frame.payload);
      continue;
    }
    throw std::runtime_error("no text but opcode " + std::to_string(frame.opcode) +
                             ", close code " + std::to_string(frame.close_code()));
  }
}

}  // namespace stoat::test
