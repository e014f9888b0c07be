#pragma once

#include <stoat/client/uri.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

namespace stoat::bench {

// The broker closed, broke the protocol, does not answer or cannot be reached.
class PerfError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A logged-in connection with channel 1 open, as thin as it can be: no heartbeats, no threads, no
// callbacks. Two ways to use it, which may alternate: call() waits for the broker's answer; read()
// and flush() take and give what the socket has and return at once.
//
// Owner: PerfProducer, PerfConsumer, or who sets things up. Thread: one at a time.
// Errors: PerfError; the connection is of no use then.
class PerfConnection {
 public:
  using Event = wire::FrameDecoder::Event;
  static constexpr ChannelNumber kChannel{1};

  PerfConnection(const client::Uri& uri, std::string_view name);
  ~PerfConnection();
  PerfConnection(const PerfConnection&) = delete;
  PerfConnection& operator=(const PerfConnection&) = delete;

  int fd() const { return fd_; }
  std::uint32_t frame_max_bytes() const { return frame_max_bytes_; }

  // --- waiting ---

  // Sends a method and waits for Ok; its payload.
  template <class Ok, class M>
  std::string call(const M& method) {
    write(method);
    flush_waiting();
    return await(Ok::kId);
  }
  // Waits for `count` methods of this kind; the payload of the last. What else comes is dropped,
  // unless it closes.
  std::string await(wire::MethodId id, std::size_t count = 1);
  void flush_waiting();
  // Says good-bye and waits for the answer.
  void close();

  // --- not waiting ---

  // To be sent by flush().
  template <class M>
  void write(const M& method) {
    wire::append_method(out_, kChannel, method);
  }
  std::size_t unsent_bytes() const { return out_.size() - out_sent_; }
  // Sends what the socket takes; true when nothing is left.
  bool flush();
  // Sends what the socket takes of bytes that are the caller's; how many.
  std::size_t send_some(std::string_view bytes);

  // Reads once and hands each frame to handle(const Event&). False: nothing was there. `scratch`
  // may be shared among connections.
  template <class Handler>
  bool read(std::span<char> scratch, Handler&& handle) {
    std::string_view input = receive(scratch, false);
    const bool any = !input.empty();
    for (Event event = next(input); event.kind != wire::FrameDecoder::Kind::need_more;
         event = next(input))
      handle(event);
    return any;
  }
  // For a method that its reader has no use for: throws when it closes the channel or connection.
  static void check_not_closed(std::string_view payload);

 private:
  void connect(const client::Uri& uri);
  void handshake(const client::Uri& uri, std::string_view name);
  template <class M>
  void write_on_connection(const M& method) {
    wire::append_method(out_, ChannelNumber(0), method);
  }
  // Bytes that came, into scratch or left over from await(); empty only when not to wait.
  std::string_view receive(std::span<char> scratch, bool wait);
  Event next(std::string_view& input);

  int fd_ = -1;
  std::uint32_t frame_max_bytes_ = 131072;
  wire::FrameDecoder decoder_{131072};
  std::string out_;
  std::size_t out_sent_ = 0;
  std::string left_over_;  // came behind what await() waited for
  std::string given_;      // left_over_ while it is being read
};

}  // namespace stoat::bench
