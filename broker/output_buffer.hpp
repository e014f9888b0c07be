#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "broker/message.hpp"

namespace stoat::broker {

// Spare byte strings of a worker, so that a connection with nothing to write holds none.
// Owner: Worker. Thread: that worker's only.
class BufferPool {
 public:
  std::string take();
  void give(std::string buffer);

 private:
  static constexpr std::size_t kMaxSpares = 16;
  static constexpr std::size_t kMaxSpareBytes = 2u << 20;
  std::vector<std::string> spares_;
};

// Bytes on their way to a socket: encoded frames, and between them bodies that are large enough to
// be written from where they lie instead of being copied.
// Owner: Connection. Thread: the connection's worker.
// Invariant: appended_total() - written_total() is what is pending.
class OutputBuffer {
 public:
  explicit OutputBuffer(BufferPool& pool) : pool_(pool) {}
  ~OutputBuffer();

  // Where frames are appended; good until the next call of any other function.
  std::string& tail();
  // Body frames for all of a message's body, split at frame_max.
  void append_body(ChannelNumber channel, const MessagePtr& message, std::uint32_t frame_max_bytes);

  // Positions in the stream of all bytes ever appended.
  std::uint64_t appended_total() const;
  std::uint64_t written_total() const { return written_total_; }
  std::uint64_t pending() const { return appended_total() - written_total_; }

  // The next pending ranges, at most `max` of them; valid until the next call of anything else.
  int gather(iovec* into, int max) const;
  // The kernel took this many bytes off the front.
  void consume(std::size_t bytes);

 private:
  struct Piece {
    std::string bytes;   // own bytes, or
    MessagePtr message;  // a view into a message's body
    std::string_view view;
    std::string_view all() const { return message ? view : std::string_view(bytes); }
  };

  BufferPool& pool_;
  std::deque<Piece> pieces_;
  std::size_t front_written_ = 0;   // of the first piece
  std::uint64_t closed_total_ = 0;  // bytes of all pieces before the last
  std::uint64_t written_total_ = 0;
};

// Bodies from this size on are written from where they lie.
inline constexpr std::size_t kGatherBodyBytes = 16 * 1024;

}  // namespace stoat::broker
