#include "wire/field_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/assert.hpp"

namespace stoat::wire {
namespace {

struct TypeInfo {
  char octet;
  std::string_view name;
};

// In the order of FieldValue::Variant.
constexpr TypeInfo kTypes[] = {
    {'V', "void"},    {'t', "bool"},          {'b', "byte"},      {'B', "unsignedbyte"},
    {'s', "short"},   {'u', "unsignedshort"}, {'I', "signedint"}, {'i', "unsignedint"},
    {'l', "long"},    {'f', "float"},         {'d', "double"},    {'D', "decimal"},
    {'S', "longstr"}, {'x', "binary"},        {'T', "timestamp"}, {'A', "array"},
    {'F', "table"},
};
static_assert(std::size(kTypes) == std::variant_size_v<FieldValue::Variant>);

template <class T>
constexpr bool kIsIntegerField = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class Number>
void append_number(std::string& out, Number number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void append_real(std::string& out, auto number) {
  const std::size_t start = out.size();
  append_number(out, number);
  if (std::isfinite(number) && out.find_first_of(".e", start) == std::string::npos) out += ".0";
}

void append_decimal(std::string& out, Decimal decimal) {
  std::string digits;
  append_number(digits, decimal.value);
  if (decimal.scale == 0) {
    out += digits;
    return;
  }
  if (digits.size() <= decimal.scale) digits.insert(0, decimal.scale + 1 - digits.size(), '0');
  digits.insert(digits.size() - decimal.scale, 1, '.');
  out += digits;
}

void append_hex(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "0x";
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

void append_text(std::string& out, const FieldValue& value);

void append_text(std::string& out, const Array& array) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(out, array[i]);
  }
  out += ']';
}

void append_text(std::string& out, const Table& table) {
  out += '{';
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (i > 0) out += ", ";
    out += table.entries()[i].first;
    out += ": ";
    append_text(out, table.entries()[i].second);
  }
  out += '}';
}

void append_text(std::string& out, const FieldValue& value) {
  std::visit(
      [&out](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Void>) {
          out += "undefined";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += v ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
          append_number(out, v);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_real(out, v);
        } else if constexpr (std::is_same_v<T, Decimal>) {
          append_decimal(out, v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          out += v;
        } else if constexpr (std::is_same_v<T, ByteArray>) {
          append_hex(out, v.bytes);
        } else if constexpr (std::is_same_v<T, Timestamp>) {
          append_number(out, v.seconds);
        } else {
          append_text(out, v);
        }
      },
      value.value);
}

std::optional<double> real_of(const FieldValue& value) {
  if (const auto* f = std::get_if<float>(&value.value)) return double{*f};
  if (const auto* d = std::get_if<double>(&value.value)) return *d;
  return std::nullopt;
}

bool equivalent_arrays(const Array& a, const Array& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const FieldValue& x, const FieldValue& y) { return equivalent(x, y); });
}

// The entries that find() can answer, by key. Sorted, because a peer's table may have as many
// entries as a frame has bytes.
std::vector<const Table::Entry*> effective_entries(const Table& table) {
  std::vector<const Table::Entry*> sorted;
  sorted.reserve(table.size());
  for (const auto& entry : table.entries()) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* x, const auto* y) { return x->first < y->first; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool repeated_later = i + 1 < sorted.size() && sorted[i]->first == sorted[i + 1]->first;
    if (!repeated_later) sorted[kept++] = sorted[i];
  }
  sorted.resize(kept);
  return sorted;
}

}  // namespace

Table::Table() = default;
Table::Table(std::initializer_list<Entry> entries) : entries_(entries) {}
Table::Table(const Table&) = default;
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(const Table&) = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

const FieldValue* Table::find(std::string_view key) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [key](const Entry& entry) { return entry.first == key; });
  return found == entries_.rend() ? nullptr : &found->second;
}

void Table::set(std::string_view key, FieldValue value) {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [key](const Entry& entry) { return entry.first == key; });
  if (found == entries_.rend()) {
    append(key, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void Table::append(std::string_view key, FieldValue value) {
  entries_.emplace_back(std::string(key), std::move(value));
}

void Table::erase(std::string_view key) {
  std::erase_if(entries_, [key](const Entry& entry) { return entry.first == key; });
}

bool Table::empty() const {
  return entries_.empty();
}

std::size_t Table::size() const {
  return entries_.size();
}

char FieldValue::type_octet() const {
  if (long_as_capital && std::holds_alternative<std::int64_t>(value)) return 'L';
  return kTypes[value.index()].octet;
}

std::string_view FieldValue::type_name() const {
  return kTypes[value.index()].name;
}

bool FieldValue::is_integer() const {
  return std::visit([](const auto& v) { return kIsIntegerField<std::decay_t<decltype(v)>>; },
                    value);
}

std::int64_t FieldValue::as_integer() const {
  STOAT_ASSERT(is_integer(), type_name());
  return std::visit(
      [](const auto& v) -> std::int64_t {
        if constexpr (kIsIntegerField<std::decay_t<decltype(v)>>) return v;
        return 0;
      },
      value);
}

const std::string* FieldValue::as_string() const {
  return std::get_if<std::string>(&value);
}

const bool* FieldValue::as_bool() const {
  return std::get_if<bool>(&value);
}

const Table* FieldValue::as_table() const {
  return std::get_if<Table>(&value);
}

const Array* FieldValue::as_array() const {
  return std::get_if<Array>(&value);
}

std::string FieldValue::to_text() const {
  std::string text;
  append_text(text, *this);
  return text;
}

bool equivalent(const FieldValue& a, const FieldValue& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() == b.as_integer();
  if (const auto x = real_of(a), y = real_of(b); x && y) {
    return *x == *y || (std::isnan(*x) && std::isnan(*y));
  }
  if (a.value.index() != b.value.index()) return false;
  return std::visit(
      [&b](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b.value);
        if constexpr (std::is_same_v<T, Table>) {
          return equivalent(x, y);
        } else if constexpr (std::is_same_v<T, Array>) {
          return equivalent_arrays(x, y);
        } else {
          return x == y;
        }
      },
      a.value);
}

bool equivalent(const Table& a, const Table& b) {
  const auto x = effective_entries(a);
  const auto y = effective_entries(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto* p, const auto* q) {
    return p->first == q->first && equivalent(p->second, q->second);
  });
}

}  // namespace stoat::wire
