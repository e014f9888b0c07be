#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/store/rocks_fixture.hpp"

// Space is given back: of deleted queues, and of a backlog once it is drained.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

class Reclaim : public RocksFixture {
 protected:
  static constexpr QueueId kOther{8};
  static constexpr StreamId kOtherStream{kOther, 0};
  static constexpr std::size_t kBytes = 1000;

  // The reclaimer works beside everything else: all a test can do is wait for what it has to reach.
  static bool comes_true(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  bool is_freed() {
    return comes_true([this] { return store_->stats().queues_being_freed == 0; });
  }
  std::size_t table_bytes() const { return files_->bytes_ending_in(".sst"); }
};

TEST_F(Reclaim, ADeletedQueueGivesItsTablesBack) {
  open_with_queue();
  ASSERT_FALSE(commit(*store_, created(kOther)));
  for (std::uint64_t first = 1; first <= 600; first += 10) {  // in the same tables
    put_range(kStream, first, first + 9, kBytes);
    put_range(kOtherStream, first, first + 9, kBytes);
  }
  put_range(kStream, 601, 2000, kBytes);
  ASSERT_FALSE(commit(*store_, deleted(kQueue)));
  // What is left of it may be little enough not to be worth the work.
  constexpr std::size_t kLeft = 300'000;
  EXPECT_TRUE(comes_true([&] { return table_bytes() < 600 * kBytes + kLeft; }));
  close();
  EXPECT_GE(tables("messages").entries, 600u);
  EXPECT_LT(tables("messages").entries, 600u + kLeft / kBytes);
  EXPECT_EQ(tables("messages").deletions, 0u);
  open();
  EXPECT_EQ(recovered_.streams.size(), 1u);
  EXPECT_EQ(recovered(kOtherStream).count, 600u);
  EXPECT_EQ(alive(*store_, kOtherStream, 1000).size(), 600u);
}

TEST_F(Reclaim, AnEmptyQueueIsForgottenAtOnce) {
  open_with_queue();
  ASSERT_FALSE(commit(*store_, deleted(kQueue)));
  EXPECT_TRUE(is_freed());
  close();
  EXPECT_EQ(queue_keys(), 0u);
}

TEST_F(Reclaim, AFewMessagesGoWithTheNextFlush) {
  open_with_queue();
  ASSERT_FALSE(commit(*store_, created(kOther)));
  put_range(kStream, 1, 5, kBytes);
  ASSERT_FALSE(commit(*store_, deleted(kQueue)));
  EXPECT_EQ(store_->stats().queues_being_freed, 1u);
  put_range(kOtherStream, 1, 100, kBytes);
  EXPECT_TRUE(is_freed());
  close();
  EXPECT_EQ(queue_keys(), 2u);
}

TEST_F(Reclaim, ADeletionThatAStopInterruptedGoesOn) {
  for (const bool clean : {true, false}) {
    SCOPED_TRACE(clean);
    const QueueId queue{clean ? 20u : 30u};
    open();
    ASSERT_FALSE(commit(*store_, created(queue)));
    put_range({queue, 0}, 1, 5, kBytes);
    ASSERT_FALSE(commit(*store_, deleted(queue)));
    if (clean) {
      close();
    } else {
      cut_power();
    }
    open();
    EXPECT_FALSE(find(recovered_, {queue, 0}));
    // Replayed from the log they are in a table now; with more merged into it they go.
    ASSERT_FALSE(commit(*store_, created(kOther)));
    put_range(kOtherStream, clean ? 1 : 1001, clean ? 1000 : 2000, kBytes);
    settle_range(kOtherStream, clean ? 1 : 1001, clean ? 1000 : 2000, kBytes);
    ASSERT_FALSE(commit(*store_, deleted(QueueId{queue.value + 1})));  // looks again
    EXPECT_TRUE(is_freed());
    close();
  }
}

TEST_F(Reclaim, ADrainedBacklogGivesItsTablesBack) {
  constexpr std::uint64_t kMessages = 2000;
  open_with_queue();
  put_range(kStream, 1, kMessages, kBytes);
  EXPECT_GT(table_bytes(), kMessages * kBytes / 2);
  for (std::uint64_t first = 1; first <= kMessages; first += 10) {
    settle_range(kStream, first, first + 9, kBytes, first + 10 > kMessages);
  }
  EXPECT_TRUE(comes_true([&] { return table_bytes() < kMessages * kBytes / 8; }));
}

TEST_F(Reclaim, SpilledTransientMessagesGiveTheirTablesBack) {
  constexpr std::uint64_t kMessages = 2000;
  open_with_queue();
  const std::string bytes(kBytes, 't');
  for (std::uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
    Batch batch;
    batch.puts.push_back(put_transient(kStream, sequence, bytes));
    ASSERT_FALSE(commit(*store_, std::move(batch)));
  }
  EXPECT_GT(table_bytes(), kMessages * kBytes / 2);
  Batch acks;
  acks.settles.push_back(settle(kStream, 1, kMessages, 0, 0));
  ASSERT_FALSE(commit(*store_, std::move(acks)));
  // So many positions settled elsewhere are worth a look.
  Batch more;
  more.settles.push_back(settle(kOtherStream, 1, 300'000, 0, 0));
  ASSERT_FALSE(commit(*store_, std::move(more)));
  EXPECT_TRUE(comes_true([&] { return table_bytes() < kMessages * kBytes / 8; }));
}

// Groups that only settle ask for no sync; now and then one is made all the same, or the filter
// would never learn of them.
TEST_F(Reclaim, MuchSettledIsSyncedUnasked) {
  constexpr std::size_t kLarge = 100'000;
  constexpr std::uint64_t kMessages = 200;  // 20 MB
  open_with_queue();
  put_range(kStream, 1, kMessages, kLarge);
  const auto before = store_->stats().syncs;
  for (std::uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
    settle_range(kStream, sequence, sequence, kLarge, false);
  }
  const auto unasked = store_->stats().syncs - before;
  EXPECT_GE(unasked, 2u);
  EXPECT_LE(unasked, 3u);
}

}  // namespace
}  // namespace stoat::store
