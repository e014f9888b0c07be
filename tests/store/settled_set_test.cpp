#include "store/settled_set.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace stoat::store {
namespace {

constexpr std::uint64_t kChunk = SettledSet::kChunkPositions;

// What SettledSet stands for, written down the naive way: one flag for each position.
class Model {
 public:
  explicit Model(std::uint64_t limit) : settled_(limit + 20'000) { settled_[0] = true; }

  void insert(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t position = first; position <= last; ++position) settled_[position] = true;
  }
  bool contains(std::uint64_t position) const { return settled_[position]; }
  std::uint64_t next_unsettled(std::uint64_t from) const {
    while (settled_[from]) ++from;
    return from;
  }
  std::uint64_t next_settled(std::uint64_t from, std::uint64_t limit) const {
    while (from < limit && !settled_[from]) ++from;
    return std::min(from, limit);
  }
  std::uint64_t watermark() const { return next_unsettled(1); }
  std::uint64_t settled_end() const {
    std::uint64_t end = settled_.size();
    while (!settled_[end - 1]) --end;
    return end;
  }
  std::uint64_t limit() const { return settled_.size() - 20'000; }

 private:
  std::vector<bool> settled_;
};

void expect_same(const SettledSet& set, const Model& model, std::mt19937_64& random) {
  ASSERT_EQ(set.watermark().value, model.watermark());
  ASSERT_EQ(set.settled_end().value, model.settled_end());
  for (int probe = 0; probe < 10; ++probe) {
    const std::uint64_t from = random() % (model.limit() + 100);
    ASSERT_EQ(set.contains(Sequence{from}), model.contains(from)) << from;
    ASSERT_EQ(set.next_unsettled(Sequence{from}).value,
              std::max<std::uint64_t>(model.next_unsettled(from), 1))
        << from;
    const std::uint64_t limit = from + random() % 10'000;
    ASSERT_EQ(set.next_settled(Sequence{from}, Sequence{limit}).value,
              model.next_settled(from, limit))
        << from << " .. " << limit;
  }
}

// What a disk would hold: the watermark and the chunks by index.
struct Persisted {
  Sequence watermark{1};
  std::map<std::uint64_t, std::string> chunks;

  void take(SettledSet& set) {
    watermark = set.watermark();
    const auto changes = set.take_changes();
    for (auto index : changes.erase) ASSERT_EQ(chunks.erase(index), 1u) << index;
    for (auto index : changes.put) chunks[index] = set.encode_chunk(index);
  }
  SettledSet restore() const {
    SettledSet set;
    set.restore_watermark(watermark);
    for (const auto& [index, encoded] : chunks) EXPECT_TRUE(set.restore_chunk(index, encoded));
    return set;
  }
};

TEST(SettledSet, StartsWithEverythingUnsettledFromOneOn) {
  SettledSet set;
  EXPECT_EQ(set.watermark(), Sequence{1});
  EXPECT_EQ(set.settled_end(), Sequence{1});
  EXPECT_FALSE(set.contains(Sequence{1}));
  EXPECT_EQ(set.next_unsettled(Sequence{7}), Sequence{7});
  EXPECT_EQ(set.next_settled(Sequence{1}, Sequence{100}), Sequence{100});
}

TEST(SettledSet, InOrderOnlyMovesTheWatermark) {
  SettledSet set;
  for (std::uint64_t position = 1; position <= 3 * kChunk; ++position) {
    set.insert(Sequence{position}, Sequence{position});
    ASSERT_FALSE(set.has_changes());
  }
  EXPECT_EQ(set.watermark(), Sequence{3 * kChunk + 1});
}

TEST(SettledSet, RewritesOnlyTheChunkThatChanged) {
  SettledSet set;
  set.insert(Sequence{2}, Sequence{2});
  set.insert(Sequence{5 * kChunk}, Sequence{5 * kChunk});
  EXPECT_EQ(set.take_changes().put, (std::vector<std::uint64_t>{0, 5}));
  set.insert(Sequence{3}, Sequence{3});
  EXPECT_EQ(set.take_changes().put, (std::vector<std::uint64_t>{0}));
  EXPECT_FALSE(set.has_changes());
}

TEST(SettledSet, FullChunkPersistsAsNothing) {
  SettledSet set;
  set.insert(Sequence{kChunk}, Sequence{2 * kChunk - 1});
  EXPECT_EQ(set.encode_chunk(1), "");
  set.insert(Sequence{3 * kChunk + 65}, Sequence{3 * kChunk + 65});
  EXPECT_EQ(set.encode_chunk(3).size(), 9u);
}

TEST(SettledSet, RefusesBytesThatAreNoChunk) {
  SettledSet set;
  EXPECT_FALSE(set.restore_chunk(1, std::string(1, '\0')));
  EXPECT_FALSE(set.restore_chunk(1, std::string(8, '\0')));
  EXPECT_FALSE(set.restore_chunk(1, std::string(1 + 8 * 65, '\0')));
  EXPECT_FALSE(set.restore_chunk(1, std::string("\x3f") + std::string(16, 'x')));
  EXPECT_TRUE(set.restore_chunk(1, std::string("\x3f") + std::string(8, 'x')));
}

TEST(SettledSet, AgreesWithANaiveSet) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    SettledSet set;
    Model model(5 * kChunk);
    Persisted disk;
    // Seeds differ in how long the runs are and how close to the watermark they fall.
    const std::uint64_t longest = seed % 3 == 0 ? 3 * kChunk : seed % 3 == 1 ? 1 : 100;
    const std::uint64_t spread = seed % 2 == 0 ? 5 * kChunk : 200;
    for (int step = 0; step < 300; ++step) {
      const bool at_watermark = random() % 4 == 0;
      const std::uint64_t first =
          at_watermark ? model.watermark() : 1 + (model.watermark() + random() % spread);
      const std::uint64_t last = std::min(first + random() % longest, model.limit());
      set.insert(Sequence{first}, Sequence{last});
      model.insert(first, last);
      ASSERT_NO_FATAL_FAILURE(expect_same(set, model, random));
      if (random() % 8 == 0) {
        ASSERT_NO_FATAL_FAILURE(disk.take(set));
        SettledSet restored = disk.restore();
        ASSERT_NO_FATAL_FAILURE(expect_same(restored, model, random));
        if (random() % 2 == 0) set = std::move(restored);
      }
    }
  }
}

}  // namespace
}  // namespace stoat::store
