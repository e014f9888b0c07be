#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/frame.hpp"

namespace stoat::test {

using std::chrono::milliseconds;
using TestClock = std::chrono::steady_clock;

// One whole frame as it came. A copy shares the payload, so views into it stay good.
struct Frame {
  wire::FrameDecoder::Kind kind = wire::FrameDecoder::Kind::need_more;
  std::uint16_t channel = 0;
  std::shared_ptr<const std::string> payload;
};

// "channel.close 404 \"NOT_FOUND - …\" on channel 1", "a body frame of 10 bytes on channel 2".
std::string describe(const Frame& frame);

// A blocking TCP socket to 127.0.0.1 that sends bytes and receives whole AMQP frames. While a send
// waits it takes what arrives, so the two sides never wait for each other with full buffers.
//
// Owner: one WireClient, or a test that speaks below AMQP. Thread: one.
// Errors: std::runtime_error when the peer's bytes are not frames; a lost connection is an answer
// (Arrival::ended), not an error, because tests provoke it.
class FrameSocket {
 public:
  enum class Arrival { frame, timeout, ended };

  explicit FrameSocket(std::uint16_t port);
  ~FrameSocket();
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&&) = delete;
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // False when the peer has ended the connection; throws when it takes nothing for too long.
  bool send(std::string_view bytes);
  // The next frame, heartbeats too.
  Arrival receive(Frame& frame, milliseconds limit);
  // Whatever bytes came (at most `count`), frames or not; fewer at the end or at the time limit.
  std::string receive_bytes(std::size_t count, milliseconds limit);
  // True when the peer ends the connection within the limit; what it sends before is dropped.
  bool receive_end(milliseconds limit);

  void shutdown_send();  // FIN; receiving goes on
  void close();
  void reset();  // RST instead of FIN

 private:
  // Waits for readability (and writability when asked); reads what is there. False at the limit.
  bool wait(short events, TestClock::time_point deadline, bool& writable);
  void read_some();
  bool next_frame(Frame& frame);

  int fd_ = -1;
  std::string input_;
  std::size_t taken_ = 0;  // bytes of input_ already given out
  bool ended_ = false;
  wire::FrameDecoder decoder_;
};

}  // namespace stoat::test
