#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/endian.hpp"
#include "wire/field_value.hpp"

namespace stoat::wire {

// Appends AMQP's elementary types to a byte string owned by the caller.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) { number(v); }
  void u32(std::uint32_t v) { number(v); }
  void u64(std::uint64_t v) { number(v); }
  void bytes(std::string_view b) { out_.append(b); }
  // REQUIRES: text.size() <= 255.
  void short_string(std::string_view text) {
    STOAT_ASSERT(text.size() <= 255, text.size());
    u8(static_cast<std::uint8_t>(text.size()));
    bytes(text);
  }
  void long_string(std::string_view text) {
    u32(static_cast<std::uint32_t>(text.size()));
    bytes(text);
  }
  void table(const Table& table);             // with its length prefix
  void array(const Array& array);             // with its length prefix
  void field_value(const FieldValue& value);  // type octet and value

  std::string& out() { return out_; }

 private:
  template <class T>
  void number(T v) {
    char raw[sizeof(T)];
    store_big(raw, v);
    out_.append(raw, sizeof raw);
  }

  std::string& out_;
};

}  // namespace stoat::wire
