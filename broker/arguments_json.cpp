#include "broker/arguments_json.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "broker/base64.hpp"
#include "broker/json_fields.hpp"
#include "wire/utf8.hpp"

namespace stoat::broker {

namespace json = boost::json;

namespace {

constexpr std::string_view kCapitalLong = "capital_long";  // FieldValue::long_as_capital

std::string_view json_type_name(const wire::FieldValue& value) {
  return value.type_octet() == 'L' ? kCapitalLong : value.type_name();
}

json::object typed(std::string_view type, json::value value) {
  return {{"type", json::string(type)}, {"value", std::move(value)}};
}

json::value text_to_json(std::string_view text) {
  if (wire::valid_utf8(text)) return json::string(text);
  return json::object{{"type", "longstr"}, {"base64", base64_encode(text)}};
}

template <class Real>
json::value real_to_json(std::string_view type, Real number) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return typed(type, json::string(digits, static_cast<std::size_t>(end - digits)));
}

// Whether a JSON object can hold the table and reads back as one.
bool fits_object(const wire::Table& table) {
  if (table.size() == 2 && table.find("type") != nullptr) return false;
  std::vector<std::string_view> keys;
  keys.reserve(table.size());
  for (const auto& [key, value] : table.entries()) {
    if (!wire::valid_utf8(key)) return false;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
}

json::value table_as_pairs(const wire::Table& table) {
  json::array pairs;
  for (const auto& [key, value] : table.entries()) {
    pairs.push_back(json::array{text_to_json(key), to_json(value)});
  }
  return typed("table", std::move(pairs));
}

}  // namespace

json::value to_json(const wire::Table& table) {
  if (!fits_object(table)) return table_as_pairs(table);
  json::object object;
  object.reserve(table.size());
  for (const auto& [key, value] : table.entries()) object[key] = to_json(value);
  return object;
}

json::value to_json(const wire::FieldValue& field) {
  const std::string_view type = json_type_name(field);
  return std::visit(
      [type](const auto& v) -> json::value {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, wire::Void>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, bool>) {
          return v;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return text_to_json(v);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return type == kCapitalLong ? json::value(typed(type, v)) : json::value(v);
        } else if constexpr (std::is_integral_v<T>) {
          return typed(type, v);
        } else if constexpr (std::is_floating_point_v<T>) {
          return real_to_json(type, v);
        } else if constexpr (std::is_same_v<T, wire::Timestamp>) {
          return typed(type, v.seconds);
        } else if constexpr (std::is_same_v<T, wire::Decimal>) {
          return typed(type, json::object{{"scale", v.scale}, {"digits", v.value}});
        } else if constexpr (std::is_same_v<T, wire::ByteArray>) {
          return json::object{{"type", json::string(type)}, {"base64", base64_encode(v.bytes)}};
        } else if constexpr (std::is_same_v<T, wire::Array>) {
          json::array array;
          array.reserve(v.size());
          for (const auto& element : v) array.push_back(to_json(element));
          return array;
        } else {
          return to_json(v);
        }
      },
      field.value);
}

json::value to_plain_json(const wire::FieldValue& field) {
  if (field.is_integer()) return field.as_integer();
  if (const wire::Array* fields = field.as_array()) {
    json::array array;
    for (const auto& element : *fields) array.push_back(to_plain_json(element));
    return array;
  }
  if (const wire::Table* table = field.as_table(); table != nullptr && fits_object(*table)) {
    json::object object;
    for (const auto& [key, value] : table->entries()) object[key] = to_plain_json(value);
    return object;
  }
  if (const auto* real = std::get_if<double>(&field.value);
      real != nullptr && std::isfinite(*real)) {
    return *real;
  }
  if (const auto* real = std::get_if<float>(&field.value);
      real != nullptr && std::isfinite(*real)) {
    return double{*real};
  }
  if (const auto* time = std::get_if<wire::Timestamp>(&field.value)) return time->seconds;
  return to_json(field);
}

namespace {

// JSON to field values, with the path to the value in hand for what() of a mistake.
class FieldParser {
 public:
  explicit FieldParser(std::string_view where) : path_(where) {}

  wire::Table table(const json::value& from) {
    wire::FieldValue value = field(from, 0);
    if (auto* table = std::get_if<wire::Table>(&value.value)) return std::move(*table);
    fail("must be an object");
  }

  wire::FieldValue field(const json::value& from, int depth) {
    switch (from.kind()) {
      case json::kind::null:
        return wire::Void{};
      case json::kind::bool_:
        return from.get_bool();
      case json::kind::int64:
        return from.get_int64();
      case json::kind::uint64:
        fail("does not fit a signed 64-bit integer");
      case json::kind::double_:
        return from.get_double();
      case json::kind::string:
        return string_of(from.get_string());
      case json::kind::array:
        return array(from.get_array(), depth);
      case json::kind::object:
        return object(from.get_object(), depth);
    }
    fail("is no JSON value");
  }

 private:
  // What a value is nested in while it is read.
  class Step {
   public:
    Step(std::string& path, std::string_view step) : path_(path), size_(path.size()) {
      path_ += " '";
      path_ += step;
      path_ += "'";
    }
    ~Step() { path_.resize(size_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::string& path_;
    std::size_t size_;
  };

  [[noreturn]] void fail(std::string_view text) const {
    throw JsonMistake(path_ + " " + std::string(text));
  }

  void check_depth(int depth) const {
    if (depth >= wire::kMaxTableDepth) {
      fail("nests deeper than " + std::to_string(wire::kMaxTableDepth) + " levels");
    }
  }

  static std::string string_of(const json::string& text) { return {text.data(), text.size()}; }

  wire::FieldValue array(const json::array& from, int depth) {
    check_depth(depth);
    wire::Array array;
    array.reserve(from.size());
    for (const auto& element : from) array.push_back(field(element, depth + 1));
    return array;
  }

  wire::FieldValue object(const json::object& from, int depth) {
    check_depth(depth);
    const json::value* type = from.size() == 2 ? from.if_contains("type") : nullptr;
    if (type != nullptr && type->is_string()) {
      const std::string name = string_of(type->get_string());
      if (const auto* value = from.if_contains("value")) {
        if (auto parsed = typed_value(name, *value, depth)) return std::move(*parsed);
      } else if (const auto* base64 = from.if_contains("base64"); base64 && base64->is_string()) {
        if (auto parsed = typed_bytes(name, string_of(base64->get_string()))) {
          return std::move(*parsed);
        }
      }
    }
    wire::Table table;
    for (const auto& member : from) {
      const std::string_view key(member.key().data(), member.key().size());
      const Step step(path_, key);
      append(table, key, field(member.value(), depth + 1));
    }
    return table;
  }

  void append(wire::Table& table, std::string_view key, wire::FieldValue value) const {
    if (key.size() > 255) fail("is a key of more than 255 bytes");
    table.append(key, std::move(value));
  }

  // nullopt: the name is none of our types, so the object is a table after all.
  std::optional<wire::FieldValue> typed_value(std::string_view type, const json::value& value,
                                              int depth) {
    if (type == "byte") return integer<std::int8_t>(value);
    if (type == "unsignedbyte") return integer<std::uint8_t>(value);
    if (type == "short") return integer<std::int16_t>(value);
    if (type == "unsignedshort") return integer<std::uint16_t>(value);
    if (type == "signedint") return integer<std::int32_t>(value);
    if (type == "unsignedint") return integer<std::uint32_t>(value);
    if (type == "long") return integer<std::int64_t>(value);
    if (type == kCapitalLong) {
      wire::FieldValue field = integer<std::int64_t>(value);
      field.long_as_capital = true;
      return field;
    }
    if (type == "float") return real<float>(value);
    if (type == "double") return real<double>(value);
    if (type == "timestamp") return wire::Timestamp{integer<std::uint64_t>(value)};
    if (type == "decimal") return decimal(value);
    if (type == "table") return pairs(value, depth);
    return std::nullopt;
  }

  std::optional<wire::FieldValue> typed_bytes(std::string_view type, std::string_view text) const {
    if (type != "binary" && type != "longstr") return std::nullopt;
    auto bytes = base64_decode(text);
    if (!bytes) fail("is no base64");
    if (type == "longstr") return wire::FieldValue(std::move(*bytes));
    return wire::FieldValue(wire::ByteArray{std::move(*bytes)});
  }

  template <class Integer>
  Integer integer(const json::value& value) const {
    json::error_code error;
    const auto number = value.to_number<Integer>(error);
    if (error) fail("does not fit its type");
    return number;
  }

  template <class Real>
  Real real(const json::value& value) const {
    if (value.is_number()) return static_cast<Real>(value.to_number<double>());
    const json::string* text = value.if_string();
    if (text == nullptr) fail("is no number");
    Real number{};
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size()) fail("is no number");
    return number;
  }

  wire::Decimal decimal(const json::value& value) const {
    const JsonFields parts(value, path_);
    return {integer<std::uint8_t>(parts.at("scale")), integer<std::uint32_t>(parts.at("digits"))};
  }

  wire::FieldValue pairs(const json::value& value, int depth) {
    const json::array* list = value.if_array();
    if (list == nullptr) fail("must be a list of pairs");
    wire::Table table;
    for (const auto& pair : *list) {
      const json::array* both = pair.if_array();
      if (both == nullptr || both->size() != 2) fail("must be a list of pairs");
      const wire::FieldValue key = field((*both)[0], depth + 1);
      if (key.as_string() == nullptr) fail("must be a list of pairs, each beginning with its key");
      const Step step(path_, *key.as_string());
      append(table, *key.as_string(), field((*both)[1], depth + 1));
    }
    return table;
  }

  std::string path_;
};

}  // namespace

wire::Table table_from_json(const json::value& from, std::string_view where) {
  return FieldParser(where).table(from);
}

wire::FieldValue field_from_json(const json::value& from, std::string_view where) {
  return FieldParser(where).field(from, 0);
}

}  // namespace stoat::broker
