#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "tests/store/forgetful_file_system.hpp"
#include "tests/store/store_fixture.hpp"

namespace stoat::store::testing {

// The RocksDB engine over a file system in memory, opened and stopped at will.
class RocksFixture : public ::testing::Test {
 protected:
  static constexpr QueueId kQueue{7};
  static constexpr StreamId kStream{kQueue, 0};
  static constexpr const char* kDataDir = "/data";
  static constexpr const char* kDatabaseDir = "/data/db";

  RocksFixture()
      : files_(std::make_shared<ForgetfulFileSystem>()), env_(rocksdb::NewCompositeEnv(files_)) {
    options_.data_dir = kDataDir;
    options_.env = env_.get();
    // The smallest there is, so that little data makes tables.
    options_.write_buffer_bytes = 64 << 10;
    options_.on_failure = [this](const StoreError& error) { failures_.push_back(error.text); };
  }

  void open() {
    store_ = open_rocks_store(options_);
    recovered_ = store_->recover();
  }
  void open_with_queue() {
    open();
    ASSERT_FALSE(commit(*store_, created(kQueue)));
  }
  void close(std::vector<QueueNumbers> numbers = {}) {
    store_->close(numbers);
    store_.reset();
  }
  // As kill -9 would: what was written is there, what was not is not.
  void kill() { store_.reset(); }
  void cut_power() {
    files_->cut_after(0);
    store_.reset();
    files_->power_up(nullptr);
  }

  void put_range(StreamId stream, std::uint64_t first, std::uint64_t last, std::size_t size) {
    const std::string bytes(size, 'm');
    for (std::uint64_t sequence = first; sequence <= last;) {
      Batch batch;
      batch.sync = true;
      for (int i = 0; i < 10 && sequence <= last; ++i, ++sequence) {
        batch.puts.push_back(put(stream, sequence, bytes));
      }
      ASSERT_FALSE(commit(*store_, std::move(batch)));
    }
  }
  void settle_range(StreamId stream, std::uint64_t first, std::uint64_t last, std::size_t size,
                    bool sync = true) {
    const std::uint64_t count = last - first + 1;
    Batch batch;
    batch.sync = sync;
    batch.settles.push_back(settle(stream, first, last, count, count * size));
    ASSERT_FALSE(commit(*store_, std::move(batch)));
  }

  const RecoveredStream& recovered(StreamId stream) const {
    const RecoveredStream* found = find(recovered_, stream);
    if (!found) throw std::runtime_error("the stream was not recovered");
    return *found;
  }

  // What the tables hold, looked at while the store is not open.
  struct TableContents {
    std::uint64_t entries = 0;
    std::uint64_t deletions = 0;
    std::uint64_t bytes = 0;
  };
  TableContents tables(const std::string& family) const;
  // The files of those, "/000012.sst".
  std::vector<std::string> table_names(const std::string& family) const;
  // The keys of the family "queues", one for a queue itself and more for its streams.
  std::size_t queue_keys() const;

  std::shared_ptr<ForgetfulFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
  RocksOptions options_;
  std::vector<std::string> failures_;
  std::unique_ptr<Store> store_;
  Recovered recovered_;
};

}  // namespace stoat::store::testing
