#include <gtest/gtest.h>

#include "rocksdb/env.h"
#include "tests/store/forgetful_file_system.hpp"
#include "tests/store/store_fixture.hpp"
#include "tests/store/store_ledger.hpp"
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

  void one_life(std::uint64_t seed, std::uint64_t operations) {
    std::mt19937_64 random(seed);
    StoreLedger ledger(random());
    files_->cut_after(operations);
    try {
      auto store = open();
      ledger.verify(*store, store->recover());
      ledger.work(*store, kSteps);
    } catch (const StoreOpenError& error) {
      ASSERT_TRUE(files_->is_cut()) << error.what();
    }
    const bool tails = random() % 4 != 0;
    files_->power_up(tails ? &random : nullptr);

    for (int again = static_cast<int>(random() % 3); again > 0; --again) {
      files_->cut_after(random() % 80);
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
    files_ = std::make_shared<ForgetfulFileSystem>();
    env_ = rocksdb::NewCompositeEnv(files_);
    // Few operations: the cut comes while the folder is made. Many: it comes between lives.
    const std::uint64_t operations = random() % (life % 4 == 0 ? 60 : 1500);
    SCOPED_TRACE(::testing::Message() << "life " << life << ", cut after " << operations);
    ASSERT_NO_FATAL_FAILURE(one_life(random(), operations));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stoat::store
