#include "wire/reader.hpp"

#include <bit>

namespace stoat::wire {

std::string_view Reader::bytes(std::size_t count) {
  if (remaining() < count) {
    fail();
    return {};
  }
  const std::string_view view(at_, count);
  at_ += count;
  return view;
}

Table Reader::table(int depth) {
  Reader entries(long_string());
  Table table;
  if (depth >= kMaxTableDepth) fail();
  while (ok_ && !entries.at_end()) {
    const std::string_view key = entries.short_string();
    FieldValue value = entries.field_value(depth);
    if (entries.ok()) {
      table.append(key, std::move(value));
    } else {
      fail();
    }
  }
  return ok_ ? std::move(table) : Table();
}

Array Reader::array(int depth) {
  Reader entries(long_string());
  Array array;
  if (depth >= kMaxTableDepth) fail();
  while (ok_ && !entries.at_end()) {
    FieldValue value = entries.field_value(depth);
    if (entries.ok()) {
      array.push_back(std::move(value));
    } else {
      fail();
    }
  }
  return ok_ ? std::move(array) : Array();
}

FieldValue Reader::field_value(int depth) {
  switch (u8()) {
    case 'V':
      return Void{};
    case 't':
      return u8() != 0;
    case 'b':
      return static_cast<std::int8_t>(u8());
    case 'B':
      return u8();
    case 's':
      return static_cast<std::int16_t>(u16());
    case 'u':
      return u16();
    case 'I':
      return static_cast<std::int32_t>(u32());
    case 'i':
      return u32();
    case 'l':
      return static_cast<std::int64_t>(u64());
    case 'L': {
      FieldValue value = static_cast<std::int64_t>(u64());
      value.long_as_capital = true;
      return value;
    }
    case 'f':
      return std::bit_cast<float>(u32());
    case 'd':
      return std::bit_cast<double>(u64());
    case 'D': {
      const std::uint8_t scale = u8();
      return Decimal{scale, u32()};
    }
    case 'S':
      return std::string(long_string());
    case 'x':
      return ByteArray{std::string(long_string())};
    case 'T':
      return Timestamp{u64()};
    case 'A':
      return array(depth + 1);
    case 'F':
      return table(depth + 1);
    default:
      fail();
      return {};
  }
}

std::string_view Reader::checked_table() {
  const std::string_view entries = long_string();
  if (ok_ && !skip_entries(entries, true, 0)) fail();
  return ok_ ? entries : std::string_view();
}

bool Reader::skip_entries(std::string_view entries, bool keyed, int depth) {
  if (depth >= kMaxTableDepth) return false;
  Reader in(entries);
  while (!in.at_end()) {
    if (keyed) in.short_string();
    if (!in.skip_value(depth)) return false;
  }
  return true;
}

bool Reader::skip_value(int depth) {
  switch (u8()) {
    case 'V':
      break;
    case 't':
    case 'b':
    case 'B':
      bytes(1);
      break;
    case 's':
    case 'u':
      bytes(2);
      break;
    case 'I':
    case 'i':
    case 'f':
      bytes(4);
      break;
    case 'D':
      bytes(5);
      break;
    case 'l':
    case 'L':
    case 'd':
    case 'T':
      bytes(8);
      break;
    case 'S':
    case 'x':
      long_string();
      break;
    case 'A':
    case 'F': {
      const bool keyed = at_[-1] == 'F';
      const std::string_view nested = long_string();
      if (ok_ && !skip_entries(nested, keyed, depth + 1)) fail();
      break;
    }
    default:
      fail();
  }
  return ok_;
}

}  // namespace stoat::wire
