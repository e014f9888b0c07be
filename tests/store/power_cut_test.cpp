#include <gtest/gtest.h>

#include "rocksdb/env.h"
#include "tests/store/forgetful_file_system.hpp"
#include "tests/store/store_fixture.hpp"
#include "tests/store/store_ledger.hpp"
#include "tests/support/long_run.hpp"
#include "tests/support/seed.hpp"

// The power is cut in the midst of a workload, and often once more while the store recovers. What
// was promised before has to be there afterwards, whole and once.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

constexpr int kSteps = 150;

class PowerCut : public ::testing::Test {
 protected:
  PowerCut()
      : files_(std::make_shared<ForgetfulFileSystem>()), env_(rocksdb::NewCompositeEnv(files_)) {}

  std::unique_ptr<Store> open() {
    RocksOptions options;
    options.data_dir = "/data";
    options.env = env_.get();
    // So small that a short workload flushes, merges and switches logs.
    options.write_buffer_bytes = 64 << 10;
    options.max_group_bytes = 8 << 10;
    return open_rocks_store(std::move(options));
  }

  // What opens may find the power gone before it is done; then it has to say so.
  bool try_recover() {
    try {
      open()->recover();
      return true;
    } catch (const StoreOpenError& error) {
      EXPECT_TRUE(files_->is_cut()) << error.what();
      return false;
    }
  }

  // recovery_cuts: after how many operations the recovery is cut, and the one after that, and so
  // on. Answers whether the first cut came within the workload.
  bool one_life(std::uint64_t seed, std::uint64_t operations,
                const std::vector<std::uint64_t>& recovery_cuts) {
    std::mt19937_64 random(seed);
    StoreLedger ledger(random());
    files_->cut_after(operations);
    try {
      auto store = open();
      ledger.verify(*store, store->recover());
      ledger.work(*store, kSteps);
    } catch (const StoreOpenError& error) {
      EXPECT_TRUE(files_->is_cut()) << error.what();
    }
    const bool was_cut = files_->is_cut();
    const bool tails = random() % 4 != 0;
    files_->power_up(tails ? &random : nullptr);

    for (const std::uint64_t cut : recovery_cuts) {
      files_->cut_after(cut);
      try_recover();
      files_->power_up(tails ? &random : nullptr);
    }

    auto store = open();
    ledger.verify(*store, store->recover());
    ledger.work(*store, kSteps / 3);
    store->close(ledger.exact_numbers());
    store.reset();
    files_->power_up(nullptr);  // a clean stop leaves nothing unsynced that matters

    store = open();
    const auto recovered = store->recover();
    ledger.verify_exact(recovered);
    ledger.verify(*store, recovered);
    return was_cut;
  }
  void new_disk() {
    files_ = std::make_shared<ForgetfulFileSystem>();
    env_ = rocksdb::NewCompositeEnv(files_);
  }

  std::shared_ptr<ForgetfulFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(PowerCut, AtManyPointsOfAWorkload) {
  constexpr int kLives = 60;
  const std::uint64_t seed = stoat::testing::test_seed();
  SCOPED_TRACE(stoat::testing::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int life = 0; life < kLives; ++life) {
    new_disk();
    // Few operations: the cut comes while the folder is made. Many: it comes between lives.
    const std::uint64_t operations = random() % (life % 4 == 0 ? 60 : 1500);
    SCOPED_TRACE(::testing::Message() << "life " << life << ", cut after " << operations);
    std::vector<std::uint64_t> recovery_cuts(random() % 3);
    for (auto& cut : recovery_cuts) cut = random() % 80;
    one_life(random(), operations, recovery_cuts);
    if (HasFailure()) return;
  }
}

// The same workload over and over, cut at every write, sync and change of a name that it makes: at
// each of them in a long run, at every few otherwise.
TEST_F(PowerCut, AtEveryWriteAndSyncOfAWorkload) {
  const std::uint64_t seed = stoat::testing::test_seed();
  SCOPED_TRACE(stoat::testing::seed_text(seed));
  const std::uint64_t stride = stoat::testing::is_long_run() ? 1 : 61;
  bool cut = true;
  for (std::uint64_t operations = seed % stride; cut; operations += stride) {
    SCOPED_TRACE(::testing::Message() << "cut after " << operations);
    new_disk();
    cut = one_life(seed, operations, {operations % 41});
    if (HasFailure()) return;
  }
}

// The recovery after a cut is cut at every operation of its own, and the recovery after that, too.
TEST_F(PowerCut, AtEveryWriteAndSyncOfARecovery) {
  // More than a recovery makes.
  constexpr std::uint64_t kMostOperations = 90;
  const std::uint64_t seed = stoat::testing::test_seed();
  SCOPED_TRACE(stoat::testing::seed_text(seed));
  std::mt19937_64 random(seed);
  const std::uint64_t stride = stoat::testing::is_long_run() ? 1 : 7;
  for (std::uint64_t first = random() % stride; first < kMostOperations; first += stride) {
    for (std::uint64_t second = first % 5; second < kMostOperations; second += 5 * stride) {
      SCOPED_TRACE(::testing::Message() << "recovery cut after " << first << ", then " << second);
      new_disk();
      one_life(seed, 300 + random() % 400, {first, second});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace stoat::store
