#include "wire/frame.hpp"

#include <algorithm>

#include "base/endian.hpp"
#include "wire/writer.hpp"

namespace stoat::wire {
namespace {

// A larger collecting buffer is given back after its frame: connections are many, and most never
// see a large method or header frame again.
constexpr std::size_t kKeptBufferBytes = 4096;

constexpr FrameDecoder::Event error_event(std::string_view text, bool unexpected_frame = false) {
  FrameDecoder::Event event;
  event.kind = FrameDecoder::Kind::error;
  event.error_text = text;
  event.unexpected_frame = unexpected_frame;
  return event;
}

constexpr auto kUnknownType = error_event("unknown frame type");
constexpr auto kTooLarge = error_event("frame is larger than the negotiated frame_max");
constexpr auto kBadEnd = error_event("frame does not end with octet 206");
constexpr auto kHeartbeatPayload = error_event("heartbeat with a payload");
constexpr auto kHeartbeatChannel = error_event("heartbeat on a channel other than 0", true);

FrameDecoder::Kind kind_of(std::uint8_t type) {
  switch (type) {
    case kFrameMethod:
      return FrameDecoder::Kind::method;
    case kFrameHeader:
      return FrameDecoder::Kind::header;
    case kFrameBody:
      return FrameDecoder::Kind::body;
    case kFrameHeartbeat:
      return FrameDecoder::Kind::heartbeat;
    default:
      return FrameDecoder::Kind::error;
  }
}

}  // namespace

FrameDecoder::Event FrameDecoder::next(std::string_view& input) {
  if (error_) return *error_;
  if (partial_delivered_) drop_partial();
  if (in_body_) {
    if (body_left_ > 0 || input.empty()) return body_bytes(input);
    // All of the payload is out; its end mark was not there yet.
    if (input.front() != kFrameEnd) return fail(kBadEnd);
    input.remove_prefix(1);
    in_body_ = false;
  }

  const bool cut_header = !partial_.empty() || input.size() < kFrameHeaderBytes;
  if (cut_header && !collect(input, kFrameHeaderBytes)) return {};
  const Header header = parse_header(cut_header ? partial_.data() : input.data());
  if (const Event* error = check_header(header)) return fail(*error);

  if (header.type == kFrameBody && header.payload_size > 0) {
    if (cut_header) {
      drop_partial();
    } else {
      input.remove_prefix(kFrameHeaderBytes);
    }
    in_body_ = true;
    body_channel_ = header.channel;
    body_left_ = header.payload_size;
    return body_bytes(input);
  }

  const std::size_t frame_size = header.payload_size + kFrameOverheadBytes;
  if (!cut_header && input.size() >= frame_size) {
    const char* payload = input.data() + kFrameHeaderBytes;
    input.remove_prefix(frame_size);
    return whole_frame(header, payload);
  }
  if (!collect(input, frame_size)) return {};
  partial_delivered_ = true;
  return whole_frame(header, partial_.data() + kFrameHeaderBytes);
}

FrameDecoder::Header FrameDecoder::parse_header(const char* bytes) {
  return {static_cast<std::uint8_t>(bytes[0]), ChannelNumber(load_big<std::uint16_t>(bytes + 1)),
          load_big<std::uint32_t>(bytes + 3)};
}

const FrameDecoder::Event* FrameDecoder::check_header(const Header& header) const {
  if (kind_of(header.type) == Kind::error) return &kUnknownType;
  if (std::uint64_t{header.payload_size} + kFrameOverheadBytes > frame_max_bytes_) {
    return &kTooLarge;
  }
  if (header.type == kFrameHeartbeat) {
    if (header.channel.value != 0) return &kHeartbeatChannel;
    if (header.payload_size != 0) return &kHeartbeatPayload;
  }
  return nullptr;
}

FrameDecoder::Event FrameDecoder::fail(const Event& error) {
  drop_partial();
  error_ = &error;
  return error;
}

FrameDecoder::Event FrameDecoder::whole_frame(const Header& header, const char* payload) {
  if (payload[header.payload_size] != kFrameEnd) return fail(kBadEnd);
  Event event;
  event.kind = kind_of(header.type);
  event.channel = header.channel;
  event.payload = {payload, header.payload_size};
  return event;
}

FrameDecoder::Event FrameDecoder::body_bytes(std::string_view& input) {
  if (input.empty()) return {};
  Event event;
  event.kind = Kind::body;
  event.channel = body_channel_;
  event.payload = input.substr(0, body_left_);
  input.remove_prefix(event.payload.size());
  body_left_ -= static_cast<std::uint32_t>(event.payload.size());
  if (body_left_ == 0 && !input.empty()) {
    if (input.front() != kFrameEnd) return fail(kBadEnd);
    input.remove_prefix(1);
    in_body_ = false;
  }
  return event;
}

bool FrameDecoder::collect(std::string_view& input, std::size_t size) {
  const std::size_t taken = std::min(size - std::min(size, partial_.size()), input.size());
  partial_.append(input.substr(0, taken));
  input.remove_prefix(taken);
  return partial_.size() >= size;
}

void FrameDecoder::drop_partial() {
  partial_delivered_ = false;
  if (partial_.capacity() > kKeptBufferBytes) {
    std::string().swap(partial_);  // an assignment would keep the memory
  } else {
    partial_.clear();
  }
}

void append_frame(std::string& out, std::uint8_t type, ChannelNumber channel,
                  std::string_view payload) {
  Writer w(out);
  w.u8(type);
  w.u16(channel.value);
  w.long_string(payload);
  out.push_back(kFrameEnd);
}

}  // namespace stoat::wire
