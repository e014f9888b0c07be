#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace stoat::wire {

// A frame is type (1 octet), channel (2), payload size (4), payload, end mark. Specification 4.2.3.
inline constexpr std::uint8_t kFrameMethod = 1;
inline constexpr std::uint8_t kFrameHeader = 2;
inline constexpr std::uint8_t kFrameBody = 3;
inline constexpr std::uint8_t kFrameHeartbeat = 8;
inline constexpr char kFrameEnd = static_cast<char>(0xCE);
inline constexpr std::size_t kFrameHeaderBytes = 7;
inline constexpr std::size_t kFrameOverheadBytes = 8;  // header and end mark
inline constexpr std::uint32_t kMinFrameMaxBytes = 4096;
inline constexpr std::string_view kProtocolHeader{"AMQP\0\0\x09\x01", 8};
inline constexpr std::string_view kHeartbeatFrame{"\x08\0\0\0\0\0\0\xCE", 8};

// Splits a peer's byte stream into frames, however the bytes are cut. No socket, no allocation
// beyond the bytes received: a method or header frame that arrives in pieces is collected here
// (at most frame_max), body bytes are passed on as they come.
//
//   std::string_view input = bytes_just_read;
//   for (auto e = decoder.next(input); e.kind != FrameDecoder::Kind::need_more;
//        e = decoder.next(input)) …
//
// A frame that is whole in the input is never copied: its payload is a view into the input, and its
// end mark is checked before it is handed out. Only the pieces of a body frame that is cut come out
// before their end mark is seen; a bad mark is then an error at a later call. An empty body frame
// is one event with an empty payload, so that one out of place is noticed; no other body event is
// empty.
//
// Owner: one connection. Thread: its owner's.
// Invariant: between calls either all of a frame's earlier bytes are held here or none are.
// Does not know which frame may follow which, nor what is in them.
class FrameDecoder {
 public:
  enum class Kind {
    need_more,  // the input is used up
    method,     // payload: class id, method id, arguments
    header,     // payload: class id, weight, body size, property flags and list
    body,       // payload: the next body bytes; a frame may come as several of these
    heartbeat,
    error,  // error_text names it: 501 FRAME_ERROR (505 when unexpected_frame); decoder is spent
  };
  struct Event {
    Kind kind = Kind::need_more;
    ChannelNumber channel;
    std::string_view payload;       // valid until the next call or until the input goes
    std::string_view error_text;    // static text
    bool unexpected_frame = false;  // a heartbeat on a channel: 505 instead of 501
  };

  explicit FrameDecoder(std::uint32_t frame_max_bytes) : frame_max_bytes_(frame_max_bytes) {}

  // frame_max counts the whole frame with its 8 octets of overhead, as negotiated in tune.
  void set_frame_max(std::uint32_t bytes) { frame_max_bytes_ = bytes; }

  // Takes bytes off the front of input. After need_more the input is empty.
  Event next(std::string_view& input);

  // Bytes of an unfinished frame held here.
  std::size_t buffered_bytes() const { return partial_.size(); }

 private:
  struct Header {
    std::uint8_t type;
    ChannelNumber channel;
    std::uint32_t payload_size;
  };
  static Header parse_header(const char* bytes);
  // The error that the header alone proves, or null.
  const Event* check_header(const Header& header) const;
  Event fail(const Event& error);
  Event whole_frame(const Header& header, const char* payload);
  Event body_bytes(std::string_view& input);
  // Moves bytes from input until partial_ has `size`; false when input was too short for that.
  bool collect(std::string_view& input, std::size_t size);
  void drop_partial();

  std::uint32_t frame_max_bytes_;
  std::string partial_;             // a frame (or its header) whose end has not arrived
  bool partial_delivered_ = false;  // partial_ was handed out and goes at the next call
  bool in_body_ = false;            // within a body frame, which is not collected
  ChannelNumber body_channel_;
  std::uint32_t body_left_ = 0;  // payload bytes of the body frame still to come; then its end mark
  const Event* error_ = nullptr;  // the answer from now on
};

// Appends one whole frame.
void append_frame(std::string& out, std::uint8_t type, ChannelNumber channel,
                  std::string_view payload);

}  // namespace stoat::wire
