#include <gtest/gtest.h>

#include <atomic>

#include "tests/store/rocks_fixture.hpp"

// After the first failed write or sync nothing is promised any more.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;
using Operation = ForgetfulFileSystem::Operation;

class Failure : public RocksFixture {
 protected:
  void fail(Operation wanted, const std::string& suffix, rocksdb::IOStatus status) {
    files_->set_fault([wanted, suffix, status](Operation operation, const std::string& name) {
      return operation == wanted && name.ends_with(suffix) ? status : rocksdb::IOStatus::OK();
    });
  }
  std::optional<StoreError> put_one(std::uint64_t sequence) {
    Batch batch;
    batch.puts.push_back(put(kStream, sequence, "message"));
    batch.sync = true;
    return commit(*store_, std::move(batch));
  }

  // From the fault on: errors only, told once, and after the fault has gone too.
  void expect_latched(const std::string& text) {
    const auto error = put_one(2);
    ASSERT_TRUE(error);
    EXPECT_NE(error->text.find(text), std::string::npos) << error->text;
    EXPECT_EQ(failures_.size(), 1u);
    files_->set_fault({});
    EXPECT_TRUE(put_one(3)) << "the fault is gone, what it took is not back";
    EXPECT_TRUE(commit(*store_, created(QueueId{9})));
    EXPECT_TRUE(commit(*store_, Batch{}));
    EXPECT_EQ(failures_.size(), 1u);
    close();

    open();
    EXPECT_FALSE(recovered_.clean);
    const auto present = alive(*store_, kStream, 3000);
    ASSERT_FALSE(present.empty());
    EXPECT_EQ(present.front(), 1u) << "what was promised before";
    EXPECT_EQ(recovered(kStream).count, present.size());
    EXPECT_FALSE(put_one(5000)) << "a new start is a new start";
  }
};

TEST_F(Failure, OfAWriteToTheLog) {
  open_with_queue();
  ASSERT_FALSE(put_one(1));
  fail(Operation::append, ".log", rocksdb::IOStatus::IOError("broken disk"));
  expect_latched("broken disk");
}

TEST_F(Failure, OfASyncOfTheLog) {
  open_with_queue();
  ASSERT_FALSE(put_one(1));
  fail(Operation::sync, ".log", rocksdb::IOStatus::IOError("lost page"));
  expect_latched("lost page");
}

TEST_F(Failure, ByAFullDisk) {
  open_with_queue();
  ASSERT_FALSE(put_one(1));
  fail(Operation::append, ".log", rocksdb::IOStatus::NoSpace("no room"));
  expect_latched("no room");
}

TEST_F(Failure, WhatWaitsGetsTheError) {
  open_with_queue();
  fail(Operation::sync, ".log", rocksdb::IOStatus::IOError("lost page"));
  std::vector<bool> failed;
  std::promise<void> done;
  for (std::uint64_t sequence = 1; sequence <= 50; ++sequence) {
    Batch batch;
    batch.puts.push_back(put(kStream, sequence, "message"));
    batch.sync = true;
    store_->submit(std::move(batch), [&, sequence](const auto& error) {
      failed.push_back(error.has_value());
      if (sequence == 50) done.set_value();
    });
  }
  done.get_future().wait();
  EXPECT_EQ(failed, std::vector<bool>(50, true));
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(Failure, OfATableInTheBackground) {
  open_with_queue();
  ASSERT_FALSE(put_one(1));
  fail(Operation::append, ".sst", rocksdb::IOStatus::NoSpace("no room"));
  // Fills write buffers until one has to become a table.
  std::optional<StoreError> error;
  for (std::uint64_t sequence = 100; sequence < 2000 && !error; ++sequence) {
    Batch batch;
    const std::string bytes(1000, 'x');
    batch.puts.push_back(put(kStream, sequence, bytes));
    batch.sync = true;
    error = commit(*store_, std::move(batch));
  }
  ASSERT_TRUE(error);
  expect_latched("no room");
}

TEST_F(Failure, OfTheVeryFirstWrite) {
  fail(Operation::sync, ".log", rocksdb::IOStatus::IOError("lost page"));
  EXPECT_THROW(open(), StoreOpenError);
  EXPECT_EQ(failures_.size(), 1u);
  store_.reset();
  files_->set_fault({});
  open();
}

TEST_F(Failure, OfAReadIsAnsweredWithAnError) {
  open_with_queue();
  put_range(kStream, 1, 300, 1000);  // several tables
  close();
  for (const auto& name : files_->files_ending_in(".sst")) {
    std::string bytes = files_->contents(name);
    for (std::size_t i = 0; i + 2000 < bytes.size(); i += 100) bytes[i] ^= 0x55;
    files_->set_contents(name, bytes);
  }
  std::optional<StoreError> error;
  try {
    open();
    ReadLimit limit{Sequence{1000}, 1000, 1 << 20};
    error = read(*store_, kStream, 1, limit).error;
  } catch (const StoreOpenError& refused) {
    error = StoreError{refused.what()};
  }
  ASSERT_TRUE(error);
  EXPECT_NE(error->text.find("Corruption"), std::string::npos) << error->text;
}

}  // namespace
}  // namespace stoat::store
