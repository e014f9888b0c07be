#include "broker/position_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "broker/ring_buffer.hpp"
#include "tests/support/seed.hpp"

namespace stoat::broker {
namespace {

using Found = std::vector<std::pair<std::uint64_t, int>>;

TEST(PositionTable, TakesRangesInOrderAcrossPages) {
  PositionTable<int> table;
  for (const std::uint64_t at : {40, 3, 15, 16, 17, 31, 32, 1000}) {
    table.insert(Sequence(at), static_cast<int>(at));
  }
  Found taken;
  table.take_range(
      Sequence(15), Sequence(40), [](int entry) { return entry == 17; },
      [&](Sequence at, int entry) { taken.emplace_back(at.value, entry); });
  EXPECT_EQ(taken, (Found{{15, 15}, {16, 16}, {31, 31}, {32, 32}, {40, 40}}));
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.first(), Sequence(3));
  EXPECT_EQ(table.take(Sequence(3)), 3);
  EXPECT_EQ(table.front(), 17);
  EXPECT_FALSE(table.contains(Sequence(16)));
  EXPECT_TRUE(table.contains(Sequence(1000)));
}

TEST(PositionTable, DoesWhatAnOrderedMapDoes) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE(testing::seed_text(seed));
  std::mt19937_64 random(seed);
  PositionTable<std::uint64_t> table;
  std::map<std::uint64_t, std::uint64_t> model;
  std::uint64_t next = 1;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t dice = random() % 10;
    if (dice < 5) {
      next += 1 + (random() % 20 == 0 ? random() % 100 : 0);
      table.insert(Sequence(next), next);
      model[next] = next;
    } else if (dice < 7) {
      const std::uint64_t at = 1 + random() % next;
      ASSERT_EQ(table.contains(Sequence(at)), model.contains(at));
      if (model.erase(at) > 0) {
        ASSERT_EQ(table.take(Sequence(at)), at);
      } else {
        table.insert(Sequence(at), at);
        model[at] = at;
      }
    } else if (dice < 9) {
      const std::uint64_t first = 1 + random() % next;
      const std::uint64_t last = first + random() % 50;
      auto expected = model.lower_bound(first);
      table.take_range(
          Sequence(first), Sequence(last), [](std::uint64_t entry) { return entry % 7 == 0; },
          [&](Sequence at, std::uint64_t) {
            while (expected->first % 7 == 0) ++expected;
            ASSERT_EQ(at.value, expected->first);
            expected = model.erase(expected);
          });
      while (expected != model.end() && expected->first <= last) {
        ASSERT_EQ(expected->first % 7, 0u);
        ++expected;
      }
    } else {
      const std::uint64_t from = 1 + random() % next;
      auto expected = model.lower_bound(from);
      int left = 30;
      table.for_each(Sequence(from), [&](Sequence at, std::uint64_t) {
        EXPECT_TRUE(expected != model.end() && at.value == expected->first);
        ++expected;
        return --left > 0;
      });
      ASSERT_TRUE(left == 0 || expected == model.end());
    }
    ASSERT_EQ(table.size(), model.size());
    if (model.empty()) continue;
    ASSERT_EQ(table.first().value, model.begin()->first);
  }
}

TEST(RingBuffer, KeepsOrderWhileItWrapsAndGrows) {
  RingBuffer<int> ring;
  int in = 0, out = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < round; ++i) ring.push_back(in++);
    for (int i = 0; i < round - 1; ++i) ASSERT_EQ(ring.pop_front(), out++);
    ASSERT_EQ(ring.size(), static_cast<std::size_t>(in - out));
    if (!ring.empty()) {
      ASSERT_EQ(ring.front(), out);
      ASSERT_EQ(ring.back(), in - 1);
    }
  }
}

TEST(RingBuffer, InsertsAnywhere) {
  RingBuffer<int> ring;
  for (int i = 0; i < 6; ++i) ring.push_back(-1);
  for (int i = 0; i < 6; ++i) ring.pop_front();
  for (const int value : {1, 3, 5, 7}) ring.push_back(value);
  ring.insert(4, 8);
  ring.insert(0, 0);
  ring.insert(3, 4);
  std::vector<int> all;
  while (!ring.empty()) all.push_back(ring.pop_front());
  EXPECT_EQ(all, (std::vector<int>{0, 1, 3, 4, 5, 7, 8}));
}

}  // namespace
}  // namespace stoat::broker
