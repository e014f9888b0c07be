#include "wire/codec.hpp"

#include "base/assert.hpp"
#include "wire/basic.hpp"

namespace stoat::wire {

std::optional<MethodId> peek_method_id(std::string_view payload) {
  Reader in(payload);
  const MethodId id{in.u16(), in.u16()};
  if (!in.ok()) return std::nullopt;
  return id;
}

void append_content_header(std::string& out, ChannelNumber channel, std::uint64_t body_size,
                           std::string_view properties) {
  constexpr std::size_t kFixedBytes = 2 + 2 + 8;  // class id, weight, body size
  Writer w(out);
  w.u8(kFrameHeader);
  w.u16(channel.value);
  w.u32(static_cast<std::uint32_t>(kFixedBytes + properties.size()));
  w.u16(basic::kClass);
  w.u16(0);
  w.u64(body_size);
  w.bytes(properties);
  out.push_back(kFrameEnd);
}

void append_body(std::string& out, ChannelNumber channel, std::string_view body,
                 std::uint32_t frame_max_bytes) {
  STOAT_ASSERT(frame_max_bytes > kFrameOverheadBytes, frame_max_bytes);
  const std::size_t payload_max = frame_max_bytes - kFrameOverheadBytes;
  while (!body.empty()) {
    const std::string_view piece = body.substr(0, payload_max);
    append_frame(out, kFrameBody, channel, piece);
    body.remove_prefix(piece.size());
  }
}

}  // namespace stoat::wire
