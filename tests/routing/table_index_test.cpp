#include "routing/table_index.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace stoat::routing {
namespace {

using wire::Array;
using wire::FieldValue;
using wire::Table;
using wire::Void;

TEST(TableIndex, AnswersAsTheTableDoes) {
  const Table table{{"b", 1}, {"a", 2}, {"b", 3}, {"", 4}, {"ab", 5}, {"a", 6}, {"b", 7}};
  const TableIndex index(table);
  EXPECT_EQ(index.entries().size(), 4u);
  for (const char* key : {"", "a", "ab", "b", "c", "abc", "B"}) {
    EXPECT_EQ(index.find(key), table.find(key)) << key;
  }
}

TEST(TableIndex, OfAnEmptyTableFindsNothing) {
  TableIndex index;
  EXPECT_EQ(index.find(""), nullptr);
  index.assign(Table{{"a", 1}});
  index.clear();
  EXPECT_EQ(index.find("a"), nullptr);
}

TEST(ValueHash, IsTheSameForEquivalentValues) {
  const std::vector<FieldValue> values = {
      Void{},
      true,
      false,
      std::int8_t{1},
      std::uint8_t{1},
      std::int16_t{1},
      std::uint16_t{1},
      std::int32_t{1},
      std::uint32_t{1},
      std::int64_t{1},
      std::int8_t{-1},
      std::int64_t{-1},
      0,
      1.0f,
      1.0,
      -0.0,
      0.0f,
      std::numeric_limits<double>::quiet_NaN(),
      std::numeric_limits<float>::quiet_NaN(),
      wire::Decimal{0, 1},
      "1",
      wire::ByteArray{"1"},
      wire::Timestamp{1},
      Array{1},
      Array{std::int64_t{1}},
      Table{{"k", 1}, {"l", 2}},
      Table{{"l", std::int64_t{2}}, {"k", 1}},
  };
  int equivalent_pairs = 0;
  for (const FieldValue& a : values) {
    for (const FieldValue& b : values) {
      if (!wire::equivalent(a, b)) continue;
      ++equivalent_pairs;
      EXPECT_EQ(value_hash(a), value_hash(b)) << a.type_name() << " and " << b.type_name();
    }
  }
  EXPECT_GT(equivalent_pairs, static_cast<int>(values.size()));
}

}  // namespace
}  // namespace stoat::routing
