#include "routing/table_index.hpp"

#include <algorithm>
#include <functional>

namespace stoat::routing {

void TableIndex::assign(const wire::Table& table) {
  entries_.clear();
  for (const auto& [key, value] : table.entries()) entries_.push_back({key, &value});
  // Later entries first among equals, so that unique() keeps the last one of a repeated key. The
  // address tells the order: the values lie in one vector.
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.value > b.value;
  });
  const auto same_key = [](const Entry& a, const Entry& b) { return a.key == b.key; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same_key), entries_.end());
}

const wire::FieldValue* TableIndex::find(std::string_view key) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), key,
                       [](const Entry& entry, std::string_view k) { return entry.key < k; });
  return at != entries_.end() && at->key == key ? at->value : nullptr;
}

std::size_t mix_hash(std::size_t seed, std::size_t value) {
  return (seed ^ value) * 0x9E3779B97F4A7C15ull + (seed >> 29);
}

std::size_t value_hash(const wire::FieldValue& value) {
  if (value.is_integer()) return std::hash<std::int64_t>{}(value.as_integer());
  if (const std::string* text = value.as_string()) return std::hash<std::string_view>{}(*text);
  if (const bool* flag = value.as_bool()) return *flag ? 2 : 1;
  return 0;
}

}  // namespace stoat::routing
