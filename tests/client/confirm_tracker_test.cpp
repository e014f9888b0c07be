#include "client/confirm_tracker.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "tests/client/conversation.hpp"

namespace stoat::client {
namespace {

using namespace std::chrono_literals;
using Fingerprint = ConfirmTracker::Fingerprint;
using test::Answer;

class ConfirmTrackerTest : public testing::Test {
 protected:
  // The answer of the tag that this call takes.
  Answer<PublishResult>& add(std::optional<Fingerprint> fingerprint = std::nullopt,
                             SteadyTime deadline = SteadyTime::max()) {
    Answer<PublishResult>& answer = answers_.emplace_back();
    const PublishTag tag = tracker_.add(answer.completion(), deadline, fingerprint);
    EXPECT_EQ(tag.value, answers_.size());
    return answer;
  }
  void add_many(int count) {
    for (int i = 0; i < count; ++i) add();
  }
  PublishStatus status(std::size_t tag) { return answers_.at(tag - 1).value().status; }
  bool pending(std::size_t tag) const { return answers_.at(tag - 1).pending(); }

  ConfirmTracker tracker_;
  std::deque<Answer<PublishResult>> answers_;
};

TEST_F(ConfirmTrackerTest, SettlesMultipleThenNackThenSingle) {
  add_many(6);
  EXPECT_TRUE(tracker_.settle(PublishTag(3), true, PublishStatus::acked));
  for (std::size_t tag : {1, 2, 3}) EXPECT_EQ(status(tag), PublishStatus::acked);
  for (std::size_t tag : {4, 5, 6}) EXPECT_TRUE(pending(tag));
  EXPECT_TRUE(tracker_.settle(PublishTag(4), false, PublishStatus::nacked));
  EXPECT_TRUE(tracker_.settle(PublishTag(5), false, PublishStatus::acked));
  EXPECT_EQ(status(4), PublishStatus::nacked);
  EXPECT_EQ(status(5), PublishStatus::acked);
  EXPECT_TRUE(pending(6));
  EXPECT_EQ(tracker_.outstanding(), 1u);
}

TEST_F(ConfirmTrackerTest, TakesAnswersOutOfOrderAndCountsEachTagOnce) {
  add_many(5);
  for (std::uint64_t tag : {4, 2, 5})
    EXPECT_TRUE(tracker_.settle(PublishTag(tag), false, PublishStatus::acked));
  EXPECT_TRUE(pending(1) && pending(3));
  // Covers 1 to 4: 2 and 4 have their answer already, and it stands.
  EXPECT_TRUE(tracker_.settle(PublishTag(4), true, PublishStatus::nacked));
  EXPECT_EQ(status(1), PublishStatus::nacked);
  EXPECT_EQ(status(2), PublishStatus::acked);
  EXPECT_EQ(status(3), PublishStatus::nacked);
  EXPECT_EQ(status(4), PublishStatus::acked);
  EXPECT_EQ(tracker_.outstanding(), 0u);
  for (const auto& answer : answers_) EXPECT_EQ(answer.calls(), 1);
}

TEST_F(ConfirmTrackerTest, TagZeroMultipleMeansAll) {
  add_many(3);
  EXPECT_TRUE(tracker_.settle(PublishTag(0), true, PublishStatus::acked));
  for (std::size_t tag : {1, 2, 3}) EXPECT_EQ(status(tag), PublishStatus::acked);
  EXPECT_TRUE(tracker_.settle(PublishTag(0), true, PublishStatus::acked)) << "all of none";
}

TEST_F(ConfirmTrackerTest, RefusesTagsThatWereNeverPublished) {
  EXPECT_FALSE(tracker_.settle(PublishTag(1), false, PublishStatus::acked));
  add_many(2);
  EXPECT_FALSE(tracker_.settle(PublishTag(3), false, PublishStatus::acked));
  EXPECT_FALSE(tracker_.settle(PublishTag(3), true, PublishStatus::acked));
  EXPECT_FALSE(tracker_.settle(PublishTag(0), false, PublishStatus::acked));
  EXPECT_FALSE(tracker_.settle(PublishTag(~0ull), true, PublishStatus::acked));
  EXPECT_TRUE(pending(1) && pending(2));
  EXPECT_TRUE(tracker_.settle(PublishTag(2), true, PublishStatus::acked));
  EXPECT_TRUE(tracker_.settle(PublishTag(1), false, PublishStatus::nacked))
      << "settled: passed over";
  EXPECT_EQ(status(1), PublishStatus::acked);
}

TEST_F(ConfirmTrackerTest, ReturnBeforeAckMakesItReturned) {
  auto& routed = add(Fingerprint::of("x", "a", "body"));
  auto& unroutable = add(Fingerprint::of("x", "b", "body"));
  EXPECT_TRUE(tracker_.returned(Fingerprint::of("x", "b", "body"), 312, "NO_ROUTE"));
  EXPECT_TRUE(unroutable.pending()) << "the ack is what settles";
  EXPECT_TRUE(tracker_.settle(PublishTag(2), true, PublishStatus::acked));
  EXPECT_EQ(routed.value().status, PublishStatus::acked);
  EXPECT_EQ(unroutable.value().status, PublishStatus::returned);
  EXPECT_EQ(unroutable.value().code, 312);
  EXPECT_EQ(unroutable.value().text, "NO_ROUTE");
}

TEST_F(ConfirmTrackerTest, MatchesReturnsOfEqualRoutesByBodyThenByAge) {
  add(Fingerprint::of("x", "k", "one"));
  add(Fingerprint::of("x", "k", "two"));
  add(Fingerprint::of("x", "k", "two"));
  add();  // not mandatory, same route: never a match
  EXPECT_TRUE(tracker_.returned(Fingerprint::of("x", "k", "two"), 312, ""));
  EXPECT_TRUE(tracker_.returned(Fingerprint::of("x", "k", "changed"), 312, "")) << "oldest: 1";
  EXPECT_FALSE(tracker_.returned(Fingerprint::of("x", "other", "two"), 312, ""));
  EXPECT_TRUE(tracker_.settle(PublishTag(0), true, PublishStatus::acked));
  EXPECT_EQ(status(1), PublishStatus::returned);
  EXPECT_EQ(status(2), PublishStatus::returned);
  EXPECT_EQ(status(3), PublishStatus::acked);
  EXPECT_EQ(status(4), PublishStatus::acked);
}

TEST_F(ConfirmTrackerTest, TimePassedIsLostAndTheLateAnswerIsSwallowed) {
  const SteadyTime start{};
  auto& early = add(std::nullopt, start + 1s);
  auto& late = add(std::nullopt, start + 5s);
  EXPECT_EQ(tracker_.expire(start), start + 1s);
  EXPECT_EQ(tracker_.expire(start + 1s), start + 5s);
  EXPECT_EQ(early.value().status, PublishStatus::lost);
  EXPECT_TRUE(late.pending());
  EXPECT_EQ(tracker_.outstanding(), 2u) << "the broker still owes both answers";
  EXPECT_TRUE(tracker_.settle(PublishTag(1), false, PublishStatus::acked));
  EXPECT_EQ(early.calls(), 1);
  EXPECT_TRUE(late.pending()) << "the late ack was not taken for that of tag 2";
  EXPECT_EQ(tracker_.expire(start + 9s), SteadyTime::max());
  EXPECT_EQ(late.value().status, PublishStatus::lost);
}

TEST_F(ConfirmTrackerTest, UnwatchedPublishesTakeTags) {
  tracker_.add_unwatched();
  Answer<PublishResult> second;
  EXPECT_EQ(tracker_.add(second.completion(), SteadyTime::max(), std::nullopt).value, 2u);
  EXPECT_TRUE(tracker_.settle(PublishTag(1), false, PublishStatus::acked));
  EXPECT_TRUE(second.pending());
  EXPECT_TRUE(tracker_.settle(PublishTag(2), false, PublishStatus::acked));
  EXPECT_TRUE(second.succeeded());
}

TEST_F(ConfirmTrackerTest, EndOfTheChannelLosesAllButWhatWasReturned) {
  auto& plain = add();
  auto& returned = add(Fingerprint::of("x", "k", "b"));
  EXPECT_TRUE(tracker_.returned(Fingerprint::of("x", "k", "b"), 312, "NO_ROUTE"));
  tracker_.fail_all(320, "CONNECTION_FORCED - shutdown");
  EXPECT_EQ(plain.value().status, PublishStatus::lost);
  EXPECT_EQ(plain.value().code, 320);
  EXPECT_EQ(plain.value().text, "CONNECTION_FORCED - shutdown");
  EXPECT_EQ(returned.value().status, PublishStatus::returned);
  EXPECT_EQ(tracker_.outstanding(), 0u);
}

// Random answers against the plainest bookkeeping there is.
TEST_F(ConfirmTrackerTest, AgreesWithANaiveTrackerOnRandomAnswers) {
  const unsigned seed = 20240229;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::optional<PublishStatus>> naive;  // by tag - 1
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0 || naive.empty()) {
      add();
      naive.emplace_back();
      continue;
    }
    const std::size_t newest = naive.size();
    const std::size_t tag = newest - random() % std::min<std::size_t>(newest, 20);
    const bool multiple = random() % 4 == 0;
    const auto answer = random() % 8 == 0 ? PublishStatus::nacked : PublishStatus::acked;
    ASSERT_TRUE(tracker_.settle(PublishTag(tag), multiple, answer));
    for (std::size_t t = multiple ? 1 : tag; t <= tag; ++t)
      if (!naive[t - 1]) naive[t - 1] = answer;
  }
  std::size_t outstanding = 0;
  for (std::size_t tag = 1; tag <= naive.size(); ++tag) {
    ASSERT_EQ(pending(tag), !naive[tag - 1].has_value()) << tag;
    if (naive[tag - 1])
      ASSERT_EQ(status(tag), *naive[tag - 1]) << tag;
    else
      ++outstanding;
    ASSERT_LE(answers_[tag - 1].calls(), 1) << tag;
  }
  EXPECT_EQ(tracker_.outstanding(), outstanding);
}

}  // namespace
}  // namespace stoat::client
