#pragma once

#include <cstdint>
#include <string_view>

#include "base/endian.hpp"
#include "wire/field_value.hpp"

namespace stoat::wire {

// Reads AMQP's elementary types off a byte range that a peer sent. Never reads outside it and never
// allocates for a length that was only announced: after a short or malformed read ok() is false,
// and every later read answers zero or empty.
// Views it returns point into the input and live as long as it does.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  std::string_view rest() const { return {at_, remaining()}; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::string_view bytes(std::size_t count);
  std::string_view short_string() { return bytes(u8()); }
  std::string_view long_string() { return bytes(u32()); }

  // A table with its length prefix, parsed into values.
  Table table(int depth = 0);
  // The same, only checked: the view covers the entries without the length prefix. Well-formed to
  // the last nested value, or ok() is false.
  std::string_view checked_table();

  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  template <class T>
  T number() {
    if (remaining() < sizeof(T)) {
      fail();
      return 0;
    }
    T value = load_big<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  FieldValue field_value(int depth);
  Array array(int depth);
  bool skip_value(int depth);
  bool skip_entries(std::string_view entries, bool keyed, int depth);

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace stoat::wire
