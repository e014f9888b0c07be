#include "broker/arguments_digest.hpp"

#include <openssl/sha.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "wire/writer.hpp"

namespace stoat::broker {
namespace {

constexpr std::size_t kDigestBytes = 16;

// Bytes that are equal exactly when wire::equivalent says so: one width for all integers, one for
// all reals, keys in order and once.
void append_canonical(wire::Writer& out, const wire::Table& table);

void append_canonical(wire::Writer& out, const wire::FieldValue& field);

void append_real(wire::Writer& out, double number) {
  if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
  if (number == 0) number = 0;  // of the two zeros, the positive one
  out.u8('d');
  out.u64(std::bit_cast<std::uint64_t>(number));
}

void append_array(wire::Writer& out, const wire::Array& array) {
  out.u8('A');
  out.u32(static_cast<std::uint32_t>(array.size()));
  for (const auto& element : array) append_canonical(out, element);
}

void append_canonical(wire::Writer& out, const wire::FieldValue& field) {
  if (field.is_integer()) {
    out.u8('l');
    out.u64(static_cast<std::uint64_t>(field.as_integer()));
  } else if (const auto* single = std::get_if<float>(&field.value)) {
    append_real(out, double{*single});
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    append_real(out, *real);
  } else if (const wire::Array* array = field.as_array()) {
    append_array(out, *array);
  } else if (const wire::Table* table = field.as_table()) {
    out.u8('F');
    append_canonical(out, *table);
  } else {
    out.field_value(field);
  }
}

void append_canonical(wire::Writer& out, const wire::Table& table) {
  std::map<std::string_view, const wire::FieldValue*> entries;
  for (const auto& [key, value] : table.entries()) entries[key] = &value;
  out.u32(static_cast<std::uint32_t>(entries.size()));
  for (const auto& [key, value] : entries) {
    out.long_string(key);
    append_canonical(out, *value);
  }
}

}  // namespace

std::string arguments_digest(const wire::Table& arguments) {
  if (arguments.empty()) return {};
  std::string canonical;
  wire::Writer out(canonical);
  append_canonical(out, arguments);

  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(canonical.data()), canonical.size(), digest);
  std::string text;
  for (std::size_t i = 0; i < kDigestBytes; ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

}  // namespace stoat::broker
