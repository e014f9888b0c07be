#pragma once

#include <boost/pfr/core.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "wire/frame.hpp"
#include "wire/method_types.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

// Methods to bytes and back, derived from the members of the method structs: a member's type is its
// encoding, and neighbouring bools share an octet (specification 4.2.5.2).

namespace stoat::wire {

// The ids at the front of a method frame's payload; nullopt when it is shorter than that.
std::optional<MethodId> peek_method_id(std::string_view payload);

namespace detail {

class FieldReader {
 public:
  explicit FieldReader(Reader& in) : in_(in) {}
  void operator()(bool& field) {
    if (bit_ == 8) {
      octet_ = in_.u8();
      bit_ = 0;
    }
    field = (octet_ >> bit_++) & 1;
  }
  void operator()(auto& field) {
    bit_ = 8;
    read(field);
  }

 private:
  void read(std::uint8_t& field) { field = in_.u8(); }
  void read(std::uint16_t& field) { field = in_.u16(); }
  void read(std::uint32_t& field) { field = in_.u32(); }
  void read(std::uint64_t& field) { field = in_.u64(); }
  void read(ShortString& field) { field.text = in_.short_string(); }
  void read(LongString& field) { field.text = in_.long_string(); }
  void read(Table& field) { field = in_.table(); }

  Reader& in_;
  int bit_ = 8;  // 8: the next bit opens a new octet
  std::uint8_t octet_ = 0;
};

class FieldWriter {
 public:
  explicit FieldWriter(Writer& out) : out_(out) {}
  void operator()(const bool& field) {
    if (bit_ == 8) flush();
    octet_ = static_cast<std::uint8_t>(octet_ | (field ? 1u << bit_ : 0u));
    ++bit_;
  }
  void operator()(const auto& field) {
    flush();
    write(field);
  }
  // Writes the octet that the last bits are in.
  void flush() {
    if (bit_ > 0) out_.u8(octet_);
    bit_ = 0;
    octet_ = 0;
  }

 private:
  void write(std::uint8_t field) { out_.u8(field); }
  void write(std::uint16_t field) { out_.u16(field); }
  void write(std::uint32_t field) { out_.u32(field); }
  void write(std::uint64_t field) { out_.u64(field); }
  void write(const ShortString& field) { out_.short_string(field.text); }
  void write(const LongString& field) { out_.long_string(field.text); }
  void write(const Table& field) { out_.table(field); }

  Writer& out_;
  int bit_ = 0;  // bits in octet_ so far
  std::uint8_t octet_ = 0;
};

}  // namespace detail

// The arguments of method M from a method frame's payload. Views in M point into payload.
// nullopt when the payload is cut short, malformed, or of another method. Bytes after the last
// argument are ignored, as other brokers do.
template <class M>
std::optional<M> decode_method(std::string_view payload) {
  Reader in(payload);
  if (MethodId id{in.u16(), in.u16()}; !in.ok() || id != M::kId) return std::nullopt;
  M method;
  detail::FieldReader read(in);
  boost::pfr::for_each_field(method, [&](auto& field) { read(field); });
  if (!in.ok()) return std::nullopt;
  return method;
}

// Appends a whole method frame.
template <class M>
void append_method(std::string& out, ChannelNumber channel, const M& method) {
  const std::size_t start = out.size();
  Writer w(out);
  w.u8(kFrameMethod);
  w.u16(channel.value);
  w.u32(0);  // payload size, known at the end
  w.u16(M::kId.class_id);
  w.u16(M::kId.method_id);
  detail::FieldWriter write(w);
  boost::pfr::for_each_field(method, [&](const auto& field) { write(field); });
  write.flush();
  store_big(out.data() + start + 3,
            static_cast<std::uint32_t>(out.size() - start - kFrameHeaderBytes));
  out.push_back(kFrameEnd);
}

// Appends the content header frame; properties are flags and list as in PropertiesView::raw().
void append_content_header(std::string& out, ChannelNumber channel, std::uint64_t body_size,
                           std::string_view properties);

// Appends body frames, none for an empty body; no frame is larger than frame_max.
void append_body(std::string& out, ChannelNumber channel, std::string_view body,
                 std::uint32_t frame_max_bytes);

}  // namespace stoat::wire
