#include "bench/perf_connection.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "wire/channel.hpp"
#include "wire/connection.hpp"

namespace stoat::bench {
namespace {

constexpr time_t kAnswerLimitSeconds = 60;
constexpr std::size_t kAnswerBytes = 16 * 1024;
constexpr std::uint32_t kFrameMaxBytes = 131072;

[[noreturn]] void fail(const std::string& what, int error) {
  throw PerfError(what + ": " + std::strerror(error));
}

[[noreturn]] void closed(const char* what, std::uint16_t code, std::string_view text) {
  throw PerfError("the broker closed the " + std::string(what) + ": " + std::to_string(code) + ' ' +
                  std::string(text));
}

}  // namespace

PerfConnection::PerfConnection(const client::Uri& uri, std::string_view name) {
  connect(uri);
  try {
    handshake(uri, name);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

PerfConnection::~PerfConnection() {
  if (fd_ >= 0) ::close(fd_);
}

void PerfConnection::connect(const client::Uri& uri) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(uri.host.c_str(), std::to_string(uri.port).c_str(), &hints, &found);
  if (error != 0) throw PerfError("cannot find " + uri.host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  int why = 0;
  for (const addrinfo* at = found; at != nullptr && fd_ < 0; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
      fd_ = fd;
      break;
    }
    why = errno;
    if (fd >= 0) ::close(fd);
  }
  if (fd_ < 0) fail("cannot connect to " + uri.host + ':' + std::to_string(uri.port), why);
  const int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval limit{kAnswerLimitSeconds, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void PerfConnection::handshake(const client::Uri& uri, std::string_view name) {
  namespace connection = wire::connection;
  out_ = wire::kProtocolHeader;
  flush_waiting();
  await(connection::Start::kId);

  connection::StartOk start_ok;
  start_ok.client_properties = {{"product", "stoat-perf"},
                                {"connection_name", std::string(name)},
                                {"capabilities", wire::Table{{"publisher_confirms", true},
                                                             {"basic.nack", true},
                                                             {"consumer_cancel_notify", true}}}};
  const std::string response = '\0' + uri.user + '\0' + uri.password;
  start_ok.mechanism = "PLAIN";
  start_ok.response = response;
  start_ok.locale = "en_US";
  write_on_connection(start_ok);
  flush_waiting();
  const std::string tune_payload = await(connection::Tune::kId);
  const auto tune = wire::decode_method<connection::Tune>(tune_payload);
  if (!tune) throw PerfError("a malformed connection.tune");

  connection::TuneOk tune_ok;
  tune_ok.channel_max = tune->channel_max;
  if (tune->frame_max != 0) frame_max_bytes_ = std::min(tune->frame_max, kFrameMaxBytes);
  tune_ok.frame_max = frame_max_bytes_;
  decoder_.set_frame_max(frame_max_bytes_);
  write_on_connection(tune_ok);
  connection::Open open;
  open.virtual_host = uri.vhost;
  write_on_connection(open);
  flush_waiting();
  await(connection::OpenOk::kId);
  call<wire::channel::OpenOk>(wire::channel::Open{});
}

std::string PerfConnection::await(wire::MethodId id, std::size_t count) {
  std::array<char, kAnswerBytes> buffer;
  for (;;) {
    std::string_view input = receive(buffer, true);
    for (Event event = next(input); event.kind != wire::FrameDecoder::Kind::need_more;
         event = next(input)) {
      if (event.kind != wire::FrameDecoder::Kind::method) continue;
      if (wire::peek_method_id(event.payload) != id) {
        check_not_closed(event.payload);
        continue;
      }
      if (--count > 0) continue;
      std::string payload(event.payload);
      left_over_ = input;
      return payload;
    }
  }
}

void PerfConnection::flush_waiting() {
  while (unsent_bytes() > 0) {
    const ssize_t sent = ::send(fd_, out_.data() + out_sent_, unsent_bytes(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) fail("cannot send", errno);
    if (sent > 0) out_sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  out_sent_ = 0;
}

void PerfConnection::close() {
  wire::connection::Close close;
  close.reply_code = 200;
  close.reply_text = "done";
  write_on_connection(close);
  flush_waiting();
  await(wire::connection::CloseOk::kId);
}

bool PerfConnection::flush() {
  out_sent_ += send_some(std::string_view(out_).substr(out_sent_));
  if (out_sent_ < out_.size()) return false;
  out_.clear();
  out_sent_ = 0;
  return true;
}

std::size_t PerfConnection::send_some(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent =
        ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      // What the broker said before it closed says more than this error.
      std::array<char, kAnswerBytes> buffer;
      const int error = errno;
      while (read(buffer, [](const Event& event) {
        if (event.kind == wire::FrameDecoder::Kind::method) check_not_closed(event.payload);
      })) {
      }
      fail("cannot send", error);
    }
  }
  return done;
}

std::string_view PerfConnection::receive(std::span<char> scratch, bool wait) {
  if (!left_over_.empty()) {
    given_ = std::move(left_over_);
    left_over_.clear();
    return given_;
  }
  for (;;) {
    const ssize_t got = ::recv(fd_, scratch.data(), scratch.size(), wait ? 0 : MSG_DONTWAIT);
    if (got > 0) return {scratch.data(), static_cast<std::size_t>(got)};
    if (got == 0) throw PerfError("the broker closed the socket");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) fail("cannot receive", errno);
    if (!wait) return {};
    throw PerfError("the broker does not answer");
  }
}

PerfConnection::Event PerfConnection::next(std::string_view& input) {
  Event event = decoder_.next(input);
  if (event.kind == wire::FrameDecoder::Kind::error)
    throw PerfError("the broker sent no frame: " + std::string(event.error_text));
  return event;
}

void PerfConnection::check_not_closed(std::string_view payload) {
  if (const auto close = wire::decode_method<wire::channel::Close>(payload))
    closed("channel", close->reply_code, close->reply_text);
  if (const auto close = wire::decode_method<wire::connection::Close>(payload))
    closed("connection", close->reply_code, close->reply_text);
}

}  // namespace stoat::bench
