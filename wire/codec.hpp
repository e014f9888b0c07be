#pragma once

#include <boost/pfr/core.hpp>
#include <optional>
#include <string>
#include <type_traits>

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

class BitReader {
 public:
  explicit BitReader(Reader& in) : in_(in) {}
  template <class T>
  void read(T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      if (bit_ == 8) {
        octet_ = in_.u8();
        bit_ = 0;
      }
      field = (octet_ >> bit_++) & 1;
    } else {
      bit_ = 8;
      if constexpr (std::is_same_v<T, std::uint8_t>)
        field = in_.u8();
      else if constexpr (std::is_same_v<T, std::uint16_t>)
        field = in_.u16();
      else if constexpr (std::is_same_v<T, std::uint32_t>)
        field = in_.u32();
      else if constexpr (std::is_same_v<T, std::uint64_t>)
        field = in_.u64();
      else if constexpr (std::is_same_v<T, ShortString>)
        field.text = in_.short_string();
      else if constexpr (std::is_same_v<T, LongString>)
        field.text = in_.long_string();
      else
        field = in_.table();
    }
  }

 private:
  Reader& in_;
  int bit_ = 8;  // 8: the next bit opens a new octet
  std::uint8_t octet_ = 0;
};

class BitWriter {
 public:
  explicit BitWriter(Writer& out) : out_(out) {}
  template <class T>
  void write(const T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      if (bit_ == 8) flush();
      octet_ = static_cast<std::uint8_t>(octet_ | (field ? 1u << bit_ : 0u));
      ++bit_;
    } else {
      flush();
      if constexpr (std::is_same_v<T, std::uint8_t>)
        out_.u8(field);
      else if constexpr (std::is_same_v<T, std::uint16_t>)
        out_.u16(field);
      else if constexpr (std::is_same_v<T, std::uint32_t>)
        out_.u32(field);
      else if constexpr (std::is_same_v<T, std::uint64_t>)
        out_.u64(field);
      else if constexpr (std::is_same_v<T, ShortString>)
        out_.short_string(field.text);
      else if constexpr (std::is_same_v<T, LongString>)
        out_.long_string(field.text);
      else
        out_.table(field);
    }
  }
  void flush() {
    if (bit_ > 0) out_.u8(octet_);
    bit_ = 0;
    octet_ = 0;
  }

 private:
  Writer& out_;
  int bit_ = 0;
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
  detail::BitReader bits(in);
  boost::pfr::for_each_field(method, [&](auto& field) { bits.read(field); });
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
  detail::BitWriter bits(w);
  boost::pfr::for_each_field(method, [&](const auto& field) { bits.write(field); });
  bits.flush();
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
