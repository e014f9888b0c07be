#include "wire/writer.hpp"

#include <bit>

namespace stoat::wire {

void Writer::table(const Table& table) {
  const std::size_t start = out_.size();
  u32(0);  // length, known at the end
  for (const auto& [key, value] : table.entries()) {
    short_string(key);
    field_value(value);
  }
  store_big(out_.data() + start, static_cast<std::uint32_t>(out_.size() - start - 4));
}

void Writer::array(const Array& array) {
  const std::size_t start = out_.size();
  u32(0);  // length, known at the end
  for (const auto& value : array) field_value(value);
  store_big(out_.data() + start, static_cast<std::uint32_t>(out_.size() - start - 4));
}

void Writer::field_value(const FieldValue& field) {
  u8(static_cast<std::uint8_t>(field.type_octet()));
  std::visit(
      [this](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Void>) {
          // the type octet says it all
        } else if constexpr (std::is_same_v<T, bool>) {
          u8(v ? 1 : 0);
        } else if constexpr (std::is_integral_v<T>) {
          number(static_cast<std::make_unsigned_t<T>>(v));
        } else if constexpr (std::is_same_v<T, float>) {
          u32(std::bit_cast<std::uint32_t>(v));
        } else if constexpr (std::is_same_v<T, double>) {
          u64(std::bit_cast<std::uint64_t>(v));
        } else if constexpr (std::is_same_v<T, Decimal>) {
          u8(v.scale);
          u32(v.value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          long_string(v);
        } else if constexpr (std::is_same_v<T, ByteArray>) {
          long_string(v.bytes);
        } else if constexpr (std::is_same_v<T, Timestamp>) {
          u64(v.seconds);
        } else if constexpr (std::is_same_v<T, Array>) {
          array(v);
        } else {
          table(v);
        }
      },
      field.value);
}

}  // namespace stoat::wire
