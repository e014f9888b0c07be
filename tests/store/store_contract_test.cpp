#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/store/store_fixture.hpp"

// What store.hpp promises, asked of every engine.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

constexpr QueueId kQueue{7};
constexpr StreamId kStream{kQueue, 0};

enum class Engine { memory, rocks };

class StoreContract : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (GetParam() == Engine::memory) {
      store_ = make_memory_store();
    } else {
      RocksOptions options;
      options.data_dir = dir_.path() / "data";
      store_ = open_rocks_store(std::move(options));
    }
    recovered_ = store_->recover();
    ASSERT_FALSE(commit(*store_, created(kQueue)));
  }

  void put_one_to(std::uint64_t last, std::string_view bytes = "message") {
    Batch batch;
    for (std::uint64_t sequence = 1; sequence <= last; ++sequence) {
      batch.puts.push_back(put(kStream, sequence, bytes));
    }
    batch.sync = true;
    ASSERT_FALSE(commit(*store_, std::move(batch)));
  }

  ReadLimit limit(std::uint64_t end, std::size_t max_messages = 256) const {
    ReadLimit limit;
    limit.end = Sequence{end};
    limit.max_messages = max_messages;
    return limit;
  }

  test::TempDir dir_;
  std::unique_ptr<Store> store_;
  Recovered recovered_;
};

TEST_P(StoreContract, StartsEmptyAndClean) {
  EXPECT_TRUE(recovered_.topology.empty());
  EXPECT_TRUE(recovered_.streams.empty());
  EXPECT_TRUE(recovered_.clean);
  EXPECT_EQ(recovered_.next_queue_id, QueueId{1});
}

TEST_P(StoreContract, AnswersWhatWasPut) {
  put_one_to(3, "some bytes");
  const auto result = read(*store_, kStream, 1, limit(100));
  ASSERT_FALSE(result.error);
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(result.messages[1].bytes, "some bytes");
  EXPECT_FALSE(result.messages[1].transient);
  EXPECT_TRUE(result.end);
  EXPECT_EQ(result.resume_from, Sequence{100});
}

TEST_P(StoreContract, OneMessageInSeveralStreamsIsAnsweredInEach) {
  const std::string large(20'000, 'l');
  Batch batch;
  batch.sync = true;
  for (std::uint8_t stream = 0; stream < 4; ++stream) {
    batch.puts.push_back(put({kQueue, stream}, 1, "before"));
    batch.puts.push_back(put({kQueue, stream}, 2, large));
    batch.puts.push_back(put({kQueue, stream}, 3, "after"));
  }
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  for (std::uint8_t stream = 0; stream < 4; ++stream) {
    const auto result = read(*store_, {kQueue, stream}, 1, {Sequence{10}});
    ASSERT_FALSE(result.error);
    ASSERT_EQ(sequences(result), (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(result.messages[1].bytes, large);
    EXPECT_EQ(result.messages[2].bytes, "after");
  }
}

TEST_P(StoreContract, EmptyBytesAreAMessage) {
  put_one_to(1, "");
  EXPECT_EQ(alive(*store_, kStream, 10), (std::vector<std::uint64_t>{1}));
}

TEST_P(StoreContract, AnUnknownStreamIsEmpty) {
  const auto result = read(*store_, {QueueId{99}, 3}, 5, limit(100));
  EXPECT_FALSE(result.error);
  EXPECT_TRUE(result.messages.empty());
  EXPECT_TRUE(result.end);
  EXPECT_EQ(result.resume_from, Sequence{100});
}

TEST_P(StoreContract, AnEmptyRangeAnswersNothing) {
  put_one_to(9);
  for (std::uint64_t end : {5, 4, 0}) {
    const auto result = read(*store_, kStream, 5, limit(end));
    EXPECT_TRUE(result.messages.empty());
    EXPECT_TRUE(result.end);
    EXPECT_EQ(result.resume_from, Sequence{5});
  }
}

TEST_P(StoreContract, StopsBeforeTheEndOfTheRange) {
  put_one_to(9);
  const auto result = read(*store_, kStream, 3, limit(6));
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{3, 4, 5}));
  EXPECT_TRUE(result.end);
  EXPECT_EQ(result.resume_from, Sequence{6});
}

TEST_P(StoreContract, StopsAtTheNumberOfMessages) {
  put_one_to(9);
  Batch batch;
  batch.settles.push_back(settle(kStream, 4, 6, 3, 3 * 7));
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  auto result = read(*store_, kStream, 1, limit(100, 3));
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_FALSE(result.end);
  EXPECT_EQ(result.resume_from, Sequence{7});
  result = read(*store_, kStream, 7, limit(100, 3));
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{7, 8, 9}));
  EXPECT_TRUE(result.end) << "nothing alive follows";
}

TEST_P(StoreContract, StopsAtTheNumberOfBytesButAnswersAtLeastOne) {
  put_one_to(5, std::string(1000, 'x'));
  ReadLimit small = limit(100);
  small.max_bytes = 2500;
  auto result = read(*store_, kStream, 1, small);
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(result.resume_from, Sequence{3});
  small.max_bytes = 10;
  result = read(*store_, kStream, 3, small);
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{3}));
  EXPECT_FALSE(result.end);
}

TEST_P(StoreContract, SettledMessagesAreNotAnswered) {
  put_one_to(10);
  Batch batch;
  batch.settles.push_back(settle(kStream, 1, 3, 3, 21));
  batch.settles.push_back(settle(kStream, 5, 5, 1, 7));
  batch.settles.push_back(settle(kStream, 9, 10, 2, 14));
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  EXPECT_EQ(alive(*store_, kStream, 100), (std::vector<std::uint64_t>{4, 6, 7, 8}));
}

TEST_P(StoreContract, PutAndSettledWithoutWaiting) {
  std::promise<void> done;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    Batch puts;
    puts.puts.push_back(put(kStream, sequence, "0123456789"));
    puts.sync = true;
    store_->submit(std::move(puts), [](const auto& error) { EXPECT_FALSE(error); });
    if (sequence % 10 == 0) continue;
    Batch acks;
    acks.settles.push_back(settle(kStream, sequence, sequence, 1, 10));
    store_->submit(std::move(acks), [&, sequence](const auto& error) {
      EXPECT_FALSE(error);
      if (sequence == 99) done.set_value();
    });
  }
  done.get_future().wait();
  ASSERT_FALSE(commit(*store_, Batch{}));
  EXPECT_EQ(alive(*store_, kStream, 1000),
            (std::vector<std::uint64_t>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
}

TEST_P(StoreContract, TransientAndDurableMessagesComeInOneOrder) {
  Batch batch;
  for (std::uint64_t sequence = 1; sequence <= 9; ++sequence) {
    batch.puts.push_back(sequence % 3 == 0 ? put_transient(kStream, sequence, "t")
                                           : put(kStream, sequence, "d"));
  }
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  const auto result = read(*store_, kStream, 1, limit(100));
  EXPECT_EQ(sequences(result), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const auto& message : result.messages) {
    EXPECT_EQ(message.transient, message.sequence.value % 3 == 0);
    EXPECT_EQ(message.bytes, message.transient ? "t" : "d");
  }
  Batch acks;
  acks.settles.push_back(settle(kStream, 2, 6, 3, 3));
  ASSERT_FALSE(commit(*store_, std::move(acks)));
  EXPECT_EQ(alive(*store_, kStream, 100), (std::vector<std::uint64_t>{1, 7, 8, 9}));
}

TEST_P(StoreContract, StreamsOfOneQueueAreApart) {
  Batch batch;
  batch.puts.push_back(put({kQueue, 0}, 1, "zero"));
  batch.puts.push_back(put({kQueue, 255}, 1, "last"));
  batch.puts.push_back(put({QueueId{8}, 0}, 1, "other queue"));
  ASSERT_FALSE(commit(*store_, std::move(batch)));
  EXPECT_EQ(read(*store_, {kQueue, 0}, 1, limit(9)).messages.at(0).bytes, "zero");
  EXPECT_EQ(read(*store_, {kQueue, 255}, 1, limit(9)).messages.at(0).bytes, "last");
  EXPECT_EQ(read(*store_, {kQueue, 255}, 1, limit(9)).messages.size(), 1u);
  EXPECT_EQ(read(*store_, {kQueue, 1}, 1, limit(9)).messages.size(), 0u);
}

TEST_P(StoreContract, CompletionsComeInTheOrderSubmitted) {
  constexpr int kBatches = 2000;
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < kBatches; ++i) {
    auto completed = [&, i](const std::optional<StoreError>& error) {
      EXPECT_FALSE(error);
      order.push_back(i);
      if (i == kBatches - 1) done.set_value();
    };
    if (i % 100 == 50) {
      TopologyChange change;
      change.puts.emplace_back("key", std::to_string(i));
      store_->save_topology(std::move(change), completed);
    } else {
      Batch batch;
      batch.puts.push_back(put(kStream, static_cast<std::uint64_t>(i) + 1, "x"));
      batch.sync = i % 3 == 0;
      store_->submit(std::move(batch), completed);
    }
  }
  done.get_future().wait();
  std::vector<int> expected(kBatches);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(StoreContract, ADeletedQueueIsEmptyAndStaysSo) {
  put_one_to(5);
  ASSERT_FALSE(commit(*store_, deleted(kQueue)));
  EXPECT_TRUE(alive(*store_, kStream, 100).empty());
  put_one_to(5);  // a late batch is taken and dropped
  EXPECT_TRUE(alive(*store_, kStream, 100).empty());
}

TEST_P(StoreContract, ManyThreadsSubmitAtOnce) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 300;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const StreamId stream{QueueId{100 + t}, 0};
      EXPECT_FALSE(commit(*store_, created(stream.queue)));
      for (std::uint64_t sequence = 1; sequence <= kEach; ++sequence) {
        Batch batch;
        batch.puts.push_back(put(stream, sequence, "from a thread"));
        batch.sync = sequence == kEach;
        if (batch.sync) {
          EXPECT_FALSE(commit(*store_, std::move(batch)));
        } else {
          store_->submit(std::move(batch), {});
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(alive(*store_, {QueueId{100 + t}, 0}, kEach + 1).size(), kEach);
  }
  EXPECT_GE(store_->stats().puts, kThreads * kEach);
}

TEST_P(StoreContract, CloseWritesWhatWasSubmitted) {
  bool completed = false;
  Batch batch;
  batch.puts.push_back(put(kStream, 1, "x"));
  store_->submit(std::move(batch), [&](const auto& error) { completed = !error; });
  store_->close({});
  EXPECT_TRUE(completed);
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreContract, ::testing::Values(Engine::memory, Engine::rocks),
                         [](const auto& engine) {
                           return engine.param == Engine::memory ? "memory" : "rocks";
                         });

}  // namespace
}  // namespace stoat::store
