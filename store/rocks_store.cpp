#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "rocksdb/listener.h"
#include "store/committer.hpp"
#include "store/damaged_database.hpp"
#include "store/data_folder.hpp"
#include "store/database.hpp"
#include "store/error_text.hpp"
#include "store/failure_latch.hpp"
#include "store/group_builder.hpp"
#include "store/key_layout.hpp"
#include "store/open.hpp"
#include "store/reader.hpp"
#include "store/reclaimer.hpp"
#include "store/recovery.hpp"
#include "store/salvage.hpp"
#include "store/stream_table.hpp"
#include "store/wal_check.hpp"

namespace stoat::store {
namespace {

// What RocksDB tells of its own accord: tables written, and failures in the background.
//
// Owner: RocksDB, shared with RocksStore. Thread: RocksDB's.
class Listener final : public rocksdb::EventListener {
 public:
  Listener(FailureLatch& latch, std::function<void(std::string_view)> on_log_line)
      : latch_(latch), on_log_line_(std::move(on_log_line)) {}

  // After this call nobody is in the former one any more.
  void set_reclaimer(Reclaimer* reclaimer) {
    std::lock_guard lock(mutex_);
    reclaimer_ = reclaimer;
    if (reclaimer_ && !merging_) reclaimer_->stop_merging();
  }

  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { tables_written(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    tables_written();
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (reason != rocksdb::BackgroundErrorReason::kCompaction) {
      return latch_.close("cannot write in the background: " + error_text(*error));
    }
    if (is_of_reading(*error)) {
      // Nothing more is lost by leaving the tables as they are.
      merging_failed(error_text(*error));
      *error = rocksdb::Status::OK();
      return;
    }
    // A merge that finds no room loses nothing; it is tried again.
    if (error->severity() >= rocksdb::Status::Severity::kHardError) {
      latch_.close("cannot write in the background: " + error_text(*error));
    }
  }

 private:
  // RocksDB has no code that tells reading from writing.
  static bool is_of_reading(const rocksdb::Status& error) {
    const std::string text = error.ToString();
    return error.IsCorruption() || error.IsPathNotFound() ||
           text.find("While open a file for random read") != std::string::npos ||
           text.find("While pread") != std::string::npos;
  }

  void tables_written() {
    std::lock_guard lock(mutex_);
    if (reclaimer_) reclaimer_->tables_written();
  }
  void merging_failed(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (!std::exchange(merging_, false)) return;
    if (on_log_line_) {
      on_log_line_("a table cannot be read, tables are no longer merged: " + text + kDamagedAdvice);
    }
    if (reclaimer_) reclaimer_->stop_merging();
  }

  FailureLatch& latch_;
  const std::function<void(std::string_view)> on_log_line_;
  std::mutex mutex_;  // guards what follows, reclaimer_ also while it is called
  Reclaimer* reclaimer_ = nullptr;
  bool merging_ = true;  // until a table turned out to be unreadable
};

// The durable engine: puts its parts together and hands each call to the one it is for.
//
//   submit, save_topology -> Committer -> GroupBuilder -> RocksDB
//   read                  -> Reader    -> MessageCursor -> RocksDB
//   FlushFilter and Reclaimer see what is settled through StreamTable
//
// Owner: as Store. Thread: as Store; constructor, recover, close and destructor on one.
// Destroyed without close it stops as after a crash: what waits gets an error.
class RocksStore final : public Store {
 public:
  explicit RocksStore(RocksOptions options)
      : options_(std::move(options)),
        folder_(env(), options_.data_dir),
        latch_(options_.on_failure),
        streams_(std::make_shared<StreamTable>()),
        listener_(std::make_shared<Listener>(latch_, options_.on_log_line)) {
    if (options_.salvage) {
      const auto report = salvage_folder(options_, folder_);
      if (report && options_.on_salvaged) options_.on_salvaged(*report);
    }
    refuse_damage();
    database_.emplace(options_, folder_.database_dir(), streams_, listener_);
  }

  ~RocksStore() override { stop_threads(); }

  Recovered recover() override {
    STOAT_ASSERT(!committer_);
    database_->reset_transient();
    RecoveryResult result = store::recover(*database_, *streams_);
    streams_->set_complete();
    builder_.emplace(*database_, *streams_, result);
    reclaimer_.emplace(*database_, *streams_, *builder_, options_.write_buffer_bytes * 2,
                       std::move(result.deleted_queues),
                       [this](std::vector<QueueId> queues) { forget(std::move(queues)); });
    committer_.emplace(
        *database_, *builder_, latch_, options_.max_group_bytes,
        [this](const UnsyncedMarks::Published& marks) { reclaimer_->published(marks); });
    reader_.emplace(*database_, *streams_, [this](std::vector<Settle> gaps) {
      Batch batch;
      batch.settles = std::move(gaps);
      committer_->submit({std::move(batch), {}});
    });
    listener_->set_reclaimer(&*reclaimer_);
    reclaimer_->start();
    if (const auto error = commit_and_wait(SetClean{false})) throw StoreOpenError(error->text);
    return std::move(result.recovered);
  }

  void submit(Batch batch, Completion done) override {
    committer_->submit({std::move(batch), std::move(done)});
  }

  void save_topology(TopologyChange change, Completion done) override {
    committer_->submit({std::move(change), std::move(done)});
  }

  void read(StreamId stream, Sequence from, ReadLimit limit, ReadCompletion done) override {
    reader_->read(stream, from, limit, std::move(done));
  }

  void close(std::span<const QueueNumbers> exact_numbers) override {
    if (!database_) return;
    if (committer_) {
      reader_->stop();
      // The clean mark comes last, when all before it is in tables.
      bool ok = !commit_and_wait(ExactNumbers{{exact_numbers.begin(), exact_numbers.end()}});
      ok = ok && flush();
      if (ok) commit_and_wait(SetClean{true});
      committer_->finish();
    }
    stop_threads();
    database_.reset();
  }

  StoreStats stats() const override {
    if (!committer_) return {};
    StoreStats stats = committer_->stats();
    if (database_) stats.wal_bytes_live = database_->wal_bytes();
    stats.queues_being_freed = reclaimer_->queues_being_freed();
    return stats;
  }

 private:
  rocksdb::Env& env() const { return options_.env ? *options_.env : *rocksdb::Env::Default(); }

  void refuse_damage() {
    // RocksDB would begin anew in a folder without CURRENT, and remove what it does not know.
    const std::string dir = folder_.database_dir();
    const std::string current = dir + "/CURRENT";
    if (!has_no_data(env(), dir) && !env().FileExists(current).ok()) {
      throw StoreOpenError("data folder " + options_.data_dir.string() + " is damaged: " + current +
                           " is missing" + kDamagedAdvice);
    }
    const auto damage = check_wal(env(), folder_.database_dir());
    if (!damage) return;
    throw StoreOpenError(
        "data folder " + options_.data_dir.string() + " is damaged: " + damage->file + " at byte " +
        std::to_string(damage->offset) + " has lost data that was on the disk" + kDamagedAdvice);
  }

  void forget(std::vector<QueueId> queues) {
    ForgetQueues forget{queues};
    committer_->submit({std::move(forget), [this, queues = std::move(queues)](const auto& error) {
                          if (error) return;
                          for (QueueId queue : queues) streams_->forget(queue);
                        }});
  }

  template <class What>
  std::optional<StoreError> commit_and_wait(What what) {
    std::promise<std::optional<StoreError>> promise;
    committer_->submit({std::move(what), [&](const auto& error) { promise.set_value(error); }});
    return promise.get_future().get();
  }

  // Flushed with the filter, the tables hold only what is alive; the next start replays nothing.
  bool flush() {
    rocksdb::FlushOptions options;
    options.allow_write_stall = true;
    const auto status = database_->db().Flush(
        options, {database_->meta(), database_->topology(), database_->queues(),
                  database_->messages(), database_->bodies()});
    if (!status.ok()) latch_.close("cannot flush " + database_->dir() + ": " + error_text(status));
    return status.ok() && !latch_.closed();
  }

  void stop_threads() {
    if (!committer_) return;
    reader_->stop();
    committer_->abandon();
    listener_->set_reclaimer(nullptr);
    reclaimer_->stop();
  }

  const RocksOptions options_;
  DataFolder folder_;
  FailureLatch latch_;
  std::shared_ptr<StreamTable> streams_;
  std::shared_ptr<Listener> listener_;
  std::optional<Database> database_;
  std::optional<GroupBuilder> builder_;
  std::optional<Reclaimer> reclaimer_;
  std::optional<Committer> committer_;
  std::optional<Reader> reader_;
};

}  // namespace

std::unique_ptr<Store> open_rocks_store(RocksOptions options) {
  return std::make_unique<RocksStore>(std::move(options));
}

}  // namespace stoat::store
