#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "wire/field_value.hpp"

namespace stoat::routing {

// A field table's entries sorted by key, of a repeated key the last one only, as Table::find()
// answers: so that comparing two tables costs no more than their sizes.
// Views the table, which must outlive it unchanged.
class TableIndex {
 public:
  struct Entry {
    std::string_view key;
    const wire::FieldValue* value;
  };

  TableIndex() = default;
  explicit TableIndex(const wire::Table& table) { assign(table); }
  void assign(const wire::Table& table);
  void clear() { entries_.clear(); }

  // nullptr when absent.
  const wire::FieldValue* find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

std::size_t mix_hash(std::size_t seed, std::size_t value);

// Equal for values that wire::equivalent() holds to be equal; coarse for nested ones.
std::size_t value_hash(const wire::FieldValue& value);

}  // namespace stoat::routing
