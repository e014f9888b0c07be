#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Field tables as values: queue and exchange arguments, client and server properties. Message
// headers are not parsed into these on the data path; see wire/properties.hpp.
//
// Type octets follow RabbitMQ and Qpid (the errata of 0-9-1), not the specification's grammar.

namespace stoat::wire {

struct FieldValue;

struct Void {
  friend bool operator==(const Void&, const Void&) = default;
};
struct Decimal {
  std::uint8_t scale = 0;
  std::uint32_t value = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};
struct Timestamp {
  std::uint64_t seconds = 0;
  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};
struct ByteArray {
  std::string bytes;
  friend bool operator==(const ByteArray&, const ByteArray&) = default;
};
using Array = std::vector<FieldValue>;

// Ordered as received; a repeated key keeps its place, and find() answers the last one.
class Table {
 public:
  using Entry = std::pair<std::string, FieldValue>;

  Table();
  Table(std::initializer_list<Entry> entries);
  Table(const Table&);
  Table(Table&&) noexcept;
  Table& operator=(const Table&);
  Table& operator=(Table&&) noexcept;
  ~Table();

  const FieldValue* find(std::string_view key) const;
  // Replaces the value that find() answers, or appends. REQUIRES: key of at most 255 bytes.
  void set(std::string_view key, FieldValue value);
  // Appends, even a key that is there already. REQUIRES: as set().
  void append(std::string_view key, FieldValue value);
  void erase(std::string_view key);
  bool empty() const;
  std::size_t size() const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

struct FieldValue {
  using Variant = std::variant<Void,           // V
                               bool,           // t
                               std::int8_t,    // b
                               std::uint8_t,   // B
                               std::int16_t,   // s
                               std::uint16_t,  // u
                               std::int32_t,   // I
                               std::uint32_t,  // i
                               std::int64_t,   // l
                               float,          // f
                               double,         // d
                               Decimal,        // D
                               std::string,    // S, long string
                               ByteArray,      // x
                               Timestamp,      // T
                               Array,          // A
                               Table>;         // F
  Variant value;
  // A 64-bit integer that came as 'L', which py-amqp writes and RabbitMQ takes for 'l'; kept so
  // that it goes out as it came. Without meaning for the other types.
  bool long_as_capital = false;

  FieldValue() = default;
  template <class T>
  requires std::is_constructible_v<Variant, T&&> &&
      (!std::is_same_v<std::decay_t<T>, FieldValue>)FieldValue(T&& v)
      : value(std::forward<T>(v)) {}  // NOLINT: implicit on purpose, tables are lists
  FieldValue(const char* text) : value(std::string(text)) {}  // NOLINT

  // The type octet on the wire.
  char type_octet() const;
  // "signedint", "longstr", "bool"…: the names that RabbitMQ's reply texts use.
  std::string_view type_name() const;
  // One of the eight integer types (b B s u I i l L); a bool is none.
  bool is_integer() const;
  std::int64_t as_integer() const;       // REQUIRES: is_integer()
  const std::string* as_string() const;  // S only
  const bool* as_bool() const;
  const Table* as_table() const;
  const Array* as_array() const;
  // For logs and reply texts: numbers as digits, strings as they are, tables as {k: v, …}.
  std::string to_text() const;
};

// Equality by value: integers of any width compare as numbers, key order in tables does not count,
// void equals only void. This is how arguments of a redeclare are compared.
bool equivalent(const FieldValue& a, const FieldValue& b);
bool equivalent(const Table& a, const Table& b);

// Tables and arrays nest no deeper than this; a peer's table beyond it is a syntax error.
inline constexpr int kMaxTableDepth = 32;

}  // namespace stoat::wire
