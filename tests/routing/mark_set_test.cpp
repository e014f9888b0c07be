#include "routing/mark_set.hpp"

#include <gtest/gtest.h>

namespace stoat::routing {
namespace {

TEST(MarkSet, HoldsEachNumberOnceUntilCleared) {
  MarkSet<> set;
  set.clear(3);
  EXPECT_TRUE(set.insert(0));
  EXPECT_TRUE(set.insert(2));
  EXPECT_FALSE(set.insert(0));
  set.clear(3);
  EXPECT_TRUE(set.insert(0));
  EXPECT_TRUE(set.insert(1));
}

TEST(MarkSet, NumbersAddedByGrowthAreNotInIt) {
  MarkSet<> set;
  set.clear(1);
  EXPECT_TRUE(set.insert(0));
  set.clear(100);
  for (std::uint32_t number = 0; number < 100; ++number) EXPECT_TRUE(set.insert(number));
}

// What was marked once, and not since, must not come back when the epoch does.
TEST(MarkSet, ForgetsOldMarksWhenItsEpochWraps) {
  MarkSet<std::uint8_t> set;
  set.clear(2);
  ASSERT_TRUE(set.insert(1));
  for (int clears = 1; clears < 600; ++clears) {
    set.clear(2);
    ASSERT_TRUE(set.insert(0)) << clears;
    ASSERT_FALSE(set.insert(0)) << clears;
  }
  MarkSet<std::uint8_t> other;
  for (int clears = 1; clears < 600; ++clears) {
    other.clear(2);
    if (clears % 255 == 1) {
      ASSERT_TRUE(other.insert(1)) << clears;
    }
  }
}

}  // namespace
}  // namespace stoat::routing
