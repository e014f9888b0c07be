#include "broker/output_buffer.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "wire/codec.hpp"

namespace stoat::broker {

std::string BufferPool::take() {
  if (spares_.empty()) return {};
  std::string buffer = std::move(spares_.back());
  spares_.pop_back();
  return buffer;
}

void BufferPool::give(std::string buffer) {
  if (spares_.size() == kMaxSpares || buffer.capacity() > kMaxSpareBytes) return;
  buffer.clear();
  spares_.push_back(std::move(buffer));
}

OutputBuffer::~OutputBuffer() {
  for (Piece& piece : pieces_) {
    if (!piece.message) pool_.give(std::move(piece.bytes));
  }
}

std::string& OutputBuffer::tail() {
  if (pieces_.empty() || pieces_.back().message) {
    if (!pieces_.empty()) closed_total_ += pieces_.back().all().size();
    pieces_.push_back({pool_.take(), nullptr, {}});
  }
  return pieces_.back().bytes;
}

std::uint64_t OutputBuffer::appended_total() const {
  return closed_total_ + (pieces_.empty() ? 0 : pieces_.back().all().size());
}

void OutputBuffer::append_body(ChannelNumber channel, const MessagePtr& message,
                               std::uint32_t frame_max_bytes) {
  std::string_view body = message->body();
  if (body.size() < kGatherBodyBytes) {
    wire::append_body(tail(), channel, body, frame_max_bytes);
    return;
  }
  const std::size_t max_payload = frame_max_bytes - wire::kFrameOverheadBytes;
  while (!body.empty()) {
    const std::string_view payload = body.substr(0, max_payload);
    body.remove_prefix(payload.size());
    wire::Writer header(tail());
    header.u8(wire::kFrameBody);
    header.u16(channel.value);
    header.u32(static_cast<std::uint32_t>(payload.size()));
    closed_total_ += pieces_.back().all().size();
    pieces_.push_back({{}, message, payload});
    tail().push_back(wire::kFrameEnd);
  }
}

int OutputBuffer::gather(iovec* into, int max) const {
  int count = 0;
  std::size_t skip = front_written_;
  for (const Piece& piece : pieces_) {
    if (count == max) break;
    const std::string_view bytes = piece.all().substr(skip);
    skip = 0;
    if (bytes.empty()) continue;
    into[count].iov_base = const_cast<char*>(bytes.data());
    into[count].iov_len = bytes.size();
    ++count;
  }
  return count;
}

void OutputBuffer::consume(std::size_t bytes) {
  STOAT_ASSERT(bytes <= pending(), bytes, pending());
  written_total_ += bytes;
  std::size_t left = front_written_ + bytes;
  while (!pieces_.empty() && left >= pieces_.front().all().size()) {
    const std::size_t size = pieces_.front().all().size();
    left -= size;
    // The last piece's bytes are not in closed_total_ until it is closed.
    if (pieces_.size() == 1) closed_total_ += size;
    if (!pieces_.front().message) pool_.give(std::move(pieces_.front().bytes));
    pieces_.pop_front();
  }
  front_written_ = left;
}

}  // namespace stoat::broker
