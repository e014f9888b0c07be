#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "bench/latency_histogram.hpp"
#include "bench/perf_confirm_window.hpp"
#include "bench/perf_received.hpp"

// The book-keeping of stoat-perf, without a broker.

namespace stoat::bench {
namespace {

class ConfirmWindow : public testing::Test {
 protected:
  bool settle(std::uint64_t tag, bool multiple) {
    return window_.settle(tag, multiple, [this](std::int64_t time) { settled_.push_back(time); });
  }

  PerfConfirmWindow window_{4};
  std::vector<std::int64_t> settled_;
};

TEST_F(ConfirmWindow, SettlesOneAndManyInAnyOrder) {
  for (std::int64_t time = 10; time < 14; ++time) window_.sent(time);
  EXPECT_EQ(window_.room(), 0u);
  EXPECT_TRUE(settle(2, false));
  EXPECT_EQ(window_.room(), 1u);
  EXPECT_TRUE(settle(3, true));
  EXPECT_EQ(settled_, (std::vector<std::int64_t>{11, 10, 12}));
  EXPECT_TRUE(settle(4, false));
  EXPECT_EQ(window_.outstanding(), 0u);
  EXPECT_EQ(window_.room(), 4u);
}

TEST_F(ConfirmWindow, KnowsTagsThatDoNotWait) {
  window_.sent(1);
  window_.sent(2);
  EXPECT_FALSE(settle(0, false));
  EXPECT_FALSE(settle(3, true));
  EXPECT_TRUE(settle(2, false));
  EXPECT_FALSE(settle(2, false));
  EXPECT_TRUE(settle(2, true));  // the one before it, too
  EXPECT_FALSE(settle(1, true));
  EXPECT_EQ(settled_, (std::vector<std::int64_t>{2, 1}));
}

TEST_F(ConfirmWindow, LaterOnesOvertakeOneThatWaitsButNotForever) {
  window_.sent(0);
  std::uint64_t tag = 1;
  while (window_.room() > 0) {
    window_.sent(static_cast<std::int64_t>(tag));
    ASSERT_TRUE(settle(++tag, false));
    ASSERT_LT(tag, 1000u);
  }
  EXPECT_EQ(window_.outstanding(), 1u);
  EXPECT_TRUE(settle(1, false));
  EXPECT_EQ(settled_.back(), 0);
  EXPECT_EQ(window_.room(), 4u);
}

TEST(PerfReceived, FindsWhatComesTwice) {
  PerfReceived received;
  EXPECT_TRUE(received.note(0, 0));
  EXPECT_TRUE(received.note(0, 63));
  EXPECT_TRUE(received.note(0, 64));
  EXPECT_TRUE(received.note(0, 5000));
  EXPECT_TRUE(received.note(7, 64));
  EXPECT_FALSE(received.note(0, 63));
  EXPECT_FALSE(received.note(0, 5000));
  EXPECT_FALSE(received.note(7, 64));
  EXPECT_TRUE(received.note(0, 4999));
}

TEST(LatencyHistogram, AnswersPercentilesOfAllAndOfWhatCameSince) {
  LatencyRecorder recorder;
  for (int i = 1; i <= 100; ++i) recorder.record(i * 1'000'000);
  LatencyHistogram first;
  recorder.add_to(first);
  EXPECT_EQ(first.count(), 100u);
  EXPECT_NEAR(first.percentile_ms(50), 50, 50 * 0.04);
  EXPECT_NEAR(first.percentile_ms(99), 99, 99 * 0.04);
  EXPECT_DOUBLE_EQ(first.percentile_ms(100), 100);
  EXPECT_DOUBLE_EQ(first.max_ms(), 100);

  for (int i = 0; i < 10; ++i) recorder.record(7'000);
  LatencyHistogram second;
  recorder.add_to(second);
  const LatencyHistogram between = second.since(first);
  EXPECT_EQ(between.count(), 10u);
  EXPECT_NEAR(between.percentile_ms(99), 0.007, 0.007 * 0.04);
  EXPECT_EQ(LatencyHistogram().percentile_ms(50), 0);
}

}  // namespace
}  // namespace stoat::bench
