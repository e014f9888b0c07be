#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "store/folder_check.hpp"
#include "store/wal_reader.hpp"
#include "tests/store/rocks_fixture.hpp"
#include "tests/support/long_run.hpp"

// A data folder with damage in it: what a check says of it, and what a salvage keeps.

namespace stoat::store {
namespace {

using namespace stoat::store::testing;

class Damaged : public RocksFixture {
 protected:
  using Alive = std::map<std::uint64_t, std::set<std::uint64_t>>;  // by queue
  using Topology = std::vector<std::pair<std::string, std::string>>;

  static constexpr std::uint64_t kMessages = 300;
  static constexpr std::size_t kBytes = 1000;
  // What one block of messages holds at most; its neighbours must not go with it.
  static constexpr std::size_t kMostInABlock = (32 << 10) / kBytes + 1;
  const QueueId kOther{8};
  const QueueId kGone{9};

  // Two queues, filled by turns so that most tables hold something of both; of the first the odd
  // ones up to 100 are settled. A third one is filled and deleted.
  void fill() {
    open_with_queue();
    for (const QueueId queue : {kOther, kGone}) ASSERT_FALSE(commit(*store_, created(queue)));
    TopologyChange change;
    for (int i = 0; i < 20; ++i) change.puts.emplace_back("queue//" + std::to_string(i), "{}");
    ASSERT_FALSE(commit(*store_, change));
    for (std::uint64_t first = 1; first <= kMessages; first += 10) {
      put_range(kStream, first, first + 9, kBytes);
      put_range({kOther, 0}, first, first + 9, kBytes);
      put_range({kGone, 0}, first, first + 9, 20);
    }
    ASSERT_FALSE(commit(*store_, deleted(kGone)));
    change = {};
    change.erases.push_back("queue//3");
    ASSERT_FALSE(commit(*store_, change));
    for (std::uint64_t sequence = 1; sequence < 100; sequence += 2) {
      settle_range(kStream, sequence, sequence, kBytes);
    }
    alive_ = all_alive();
    topology_ = topology_now();
    ASSERT_EQ(alive_[7].size(), kMessages - 50);
    ASSERT_EQ(alive_[8].size(), kMessages);
    ASSERT_EQ(topology_.size(), 19u);
  }
  void fill_and_close() {
    fill();
    close();
    ASSERT_GT(files_->files_ending_in(".sst").size(), 4u);
  }

  Alive all_alive() {
    Alive found;
    for (const QueueId queue : {kQueue, kOther, kGone}) {
      const auto present = alive(*store_, {queue, 0}, kMessages + 1);
      if (!present.empty()) found[queue.value] = {present.begin(), present.end()};
    }
    return found;
  }
  // As a start finds it.
  Topology topology_now() {
    kill();
    open();
    return recovered_.topology;
  }

  FolderReport check() { return check_folder(options_, "/scratch", {}); }

  // Salvages, and opens the result as any other folder. What is alive then.
  Alive salvage() {
    options_.salvage = true;
    report_.reset();
    options_.on_salvaged = [this](const FolderReport& report) { report_ = report; };
    open();
    options_.salvage = false;
    EXPECT_TRUE(report_);
    kill();
    open();
    const Alive left = all_alive();
    for (const auto& stream : recovered_.streams) {
      const auto queue = stream.stream.queue.value;
      const auto found = left.find(queue);
      EXPECT_EQ(stream.count, found == left.end() ? 0 : found->second.size()) << queue;
    }
    close();
    EXPECT_TRUE(check().damage.empty()) << check().damage[0].file << check().damage[0].what;
    return left;
  }

  // `left` holds nothing that was not alive; answers how many of each queue are missing.
  std::map<std::uint64_t, std::size_t> missing(const Alive& left) {
    std::map<std::uint64_t, std::size_t> lost;
    for (const auto& [queue, there] : left) {
      EXPECT_TRUE(
          std::includes(alive_[queue].begin(), alive_[queue].end(), there.begin(), there.end()))
          << "queue " << queue << " has what it had not";
    }
    for (const auto& [queue, were] : alive_) {
      const auto found = left.find(queue);
      const std::size_t there = found == left.end() ? 0 : found->second.size();
      if (there < were.size()) lost[queue] = were.size() - there;
    }
    return lost;
  }
  void expect_nothing_lost(const Alive& left) {
    EXPECT_TRUE(missing(left).empty());
    EXPECT_EQ(recovered_.topology, topology_);
  }

  static bool names(const FolderReport& report, const std::string& file) {
    return std::any_of(report.damage.begin(), report.damage.end(),
                       [&](const Damage& damage) { return damage.file == file; });
  }
  static std::uint64_t readable(const FolderReport& report, QueueId queue) {
    for (const auto& stream : report.streams) {
      if (stream.stream.queue == queue) return stream.readable;
    }
    return 0;
  }

  // Those in use, while the store is not open.
  std::vector<std::string> tables_of(const std::string& family) {
    std::vector<std::string> found;
    for (const auto& name : table_names(family)) found.push_back(kDatabaseDir + name);
    return found;
  }
  std::string only(const std::string& suffix) {
    const auto files = files_->files_ending_in(suffix);
    EXPECT_EQ(files.size(), 1u) << suffix;
    return files.front();
  }
  void flip(const std::string& file, std::size_t at) {
    std::string bytes = files_->contents(file);
    bytes.at(at) ^= 0x55;
    files_->set_contents(file, bytes);
  }
  std::string refusal() {
    try {
      open();
      return "";
    } catch (const StoreOpenError& error) {
      return error.what();
    }
  }

  std::map<std::string, std::string> snapshot() {
    std::map<std::string, std::string> all;
    for (const auto& name : files_->files_ending_in("")) all[name] = files_->contents(name);
    return all;
  }
  // A new disk with these files.
  void restore(const std::map<std::string, std::string>& all) {
    store_.reset();
    files_ = std::make_shared<ForgetfulFileSystem>();
    env_ = rocksdb::NewCompositeEnv(files_);
    options_.env = env_.get();
    for (const auto& [name, bytes] : all) files_->set_contents(name, bytes);
  }

  // 1 when the queue cannot be read to its end.
  int read_up_to_error(const std::string& table, QueueId queue) {
    const Sequence end{kMessages + 1};
    std::set<std::uint64_t> got;
    Sequence from{1};
    while (true) {
      const ReadResult result = read(*store_, {queue, 0}, from.value, {end, 64});
      for (const auto sequence : sequences(result)) got.insert(sequence);
      if (result.error) {
        EXPECT_NE(result.error->text.find(table), std::string::npos) << result.error->text;
        break;
      }
      if (result.end) {
        EXPECT_EQ(got, alive_[queue.value]);
        return 0;
      }
      EXPECT_GT(result.resume_from, from) << "no headway";
      if (result.resume_from <= from) return 0;
      from = result.resume_from;
    }
    // All up to the bad place, and nothing beyond. Asked again it says the same.
    const auto& all = alive_[queue.value];
    EXPECT_EQ(got, std::set<std::uint64_t>(all.begin(), all.lower_bound(from.value)));
    EXPECT_TRUE(read(*store_, {queue, 0}, from.value, {end, 64}).error);
    return 1;
  }

  Alive alive_;
  Topology topology_;
  std::optional<FolderReport> report_;
};

TEST_F(Damaged, NothingIsSaidOfAHealthyFolderAndNothingTouched) {
  fill();
  for (const bool clean : {false, true}) {
    clean ? close() : kill();
    const auto before = snapshot();
    const auto operations = files_->operations();
    const FolderReport report = check();
    EXPECT_TRUE(report.damage.empty()) << report.damage[0].file << " " << report.damage[0].what;
    EXPECT_EQ(files_->operations(), operations) << "a check writes nothing";
    EXPECT_EQ(snapshot(), before);
    EXPECT_EQ(readable(report, kQueue), alive_[7].size());
    EXPECT_EQ(readable(report, kOther), alive_[8].size());
    EXPECT_EQ(readable(report, kGone), 0u);
    EXPECT_EQ(report.topology, topology_);
    open();
  }
  options_.salvage = true;
  options_.on_salvaged = [](const FolderReport&) { FAIL() << "nothing was to be salvaged"; };
  close();
  open();
  EXPECT_EQ(all_alive(), alive_);
}

TEST_F(Damaged, NothingToCheckIsSaid) {
  EXPECT_THROW(check(), StoreOpenError);
  open();
  EXPECT_THROW(check(), StoreOpenError) << "in use";
  kill();
  EXPECT_TRUE(check().damage.empty());
}

TEST_F(Damaged, ABadBlockCostsWhatIsInIt) {
  fill_and_close();
  std::size_t all_lost = 0;
  for (const auto& table : tables_of("messages")) {
    const auto healthy = snapshot();
    flip(table, files_->contents(table).size() / 3);
    const FolderReport report = check();
    ASSERT_EQ(report.damage.size(), 1u);
    EXPECT_EQ(report.damage[0].file, table);
    EXPECT_NE(report.damage[0].what.find("checksum mismatch"), std::string::npos)
        << report.damage[0].what;
    const std::string damaged = files_->contents(table);

    auto lost = missing(salvage());
    EXPECT_LE(lost[7] + lost[8], kMostInABlock);
    all_lost += lost[7] + lost[8];
    EXPECT_EQ(readable(report, kQueue), alive_[7].size() - lost[7]);
    EXPECT_EQ(readable(report, kOther), alive_[8].size() - lost[8]);
    EXPECT_EQ(recovered_.topology, topology_);
    // The damaged file is kept as it was, and told where.
    EXPECT_EQ(report_->kept_aside, "/data/db.damaged");
    EXPECT_EQ(files_->contents("/data/db.damaged" + table.substr(8)), damaged);
    restore(healthy);
  }
  EXPECT_GT(all_lost, 0u);
}

TEST_F(Damaged, SeveralBadBlocksLeaveWhatIsBetweenThem) {
  fill_and_close();
  const auto tables = tables_of("messages");
  for (const auto& table : tables) {
    const std::size_t size = files_->contents(table).size();
    for (const std::size_t part : {1, 6}) flip(table, size * part / 8);
  }
  const std::size_t blocks = tables.size() * 2;
  auto lost = missing(salvage());
  EXPECT_GT(lost[7] + lost[8], 0u);
  EXPECT_LE(lost[7] + lost[8], blocks * kMostInABlock);
}

// Every part of a table: blocks, index, properties, footer.
TEST_F(Damaged, OneBadByteAnywhereInATableIsFoundAndCostsNoOtherTable) {
  fill_and_close();
  const auto healthy = snapshot();
  const std::string table = tables_of("messages").at(1);
  const std::size_t size = healthy.at(table).size();
  // What the table holds is what is missing without it.
  files_->remove(table);
  const auto most = missing(salvage());
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < size; at += size / 12) places.push_back(at);
  for (std::size_t back = 1; back <= 2600 && back <= size; back += 97)
    places.push_back(size - back);
  for (const std::size_t at : places) {
    SCOPED_TRACE(::testing::Message() << "byte " << at << " of " << size);
    restore(healthy);
    flip(table, at);
    const FolderReport report = check();
    if (report.damage.empty()) continue;  // padding of the footer
    EXPECT_TRUE(names(report, table));
    auto lost = missing(salvage());
    for (const auto& [queue, count] : lost) {
      ASSERT_TRUE(most.contains(queue));
      EXPECT_LE(count, most.at(queue));
    }
    EXPECT_EQ(recovered_.topology, topology_);
  }
}

TEST_F(Damaged, ATableCutShortOrMissingCostsWhatIsInIt) {
  fill_and_close();
  std::size_t all_lost = 0;
  const auto healthy = snapshot();
  for (const auto& table : tables_of("messages")) {
    for (const bool missing_altogether : {false, true}) {
      restore(healthy);
      if (missing_altogether) {
        files_->remove(table);
      } else {
        files_->set_contents(table, healthy.at(table).substr(0, healthy.at(table).size() / 2));
      }
      const std::string text = refusal();
      EXPECT_NE(text.find(table.substr(table.rfind('/') + 1)), std::string::npos) << text;
      EXPECT_NE(text.find("--check"), std::string::npos) << text;
      EXPECT_NE(text.find("--salvage"), std::string::npos) << text;
      store_.reset();

      const FolderReport report = check();
      EXPECT_EQ(report.damage.size(), 1u);
      EXPECT_TRUE(names(report, table)) << report.damage[0].file;
      auto lost = missing(salvage());
      all_lost += lost[7] + lost[8];
      EXPECT_EQ(readable(report, kQueue), alive_[7].size() - lost[7]);
      EXPECT_EQ(readable(*report_, kQueue), alive_[7].size() - lost[7]);
      EXPECT_EQ(recovered_.topology, topology_);
    }
  }
  EXPECT_GT(all_lost, 0u);
}

TEST_F(Damaged, WithoutTheListOfTablesNothingIsLost) {
  fill();
  for (const bool clean : {true, false}) {
    clean ? close() : kill();
    const auto healthy = snapshot();
    const std::string manifest = "/data/db/" + files_->contents("/data/db/CURRENT").substr(0, 15);
    ASSERT_TRUE(healthy.contains(manifest)) << manifest;
    const std::string list = healthy.at(manifest);
    struct Case {
      const char* what;
      std::string file;
      std::optional<std::string> bytes;
    };
    std::string flipped = list;
    flipped[list.size() / 2] ^= 0x55;
    const Case cases[] = {{"no CURRENT", "/data/db/CURRENT", {}},
                          {"an empty CURRENT", "/data/db/CURRENT", ""},
                          {"a garbled CURRENT", "/data/db/CURRENT", "rubbish"},
                          {"no MANIFEST", manifest, {}},
                          {"an empty MANIFEST", manifest, ""},
                          {"a damaged MANIFEST", manifest, flipped}};
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message() << c.what << (clean ? " after a stop" : " after a kill"));
      restore(healthy);
      c.bytes ? files_->set_contents(c.file, *c.bytes) : files_->remove(c.file);
      const auto damaged = snapshot();
      const std::string text = refusal();
      EXPECT_NE(text.find("--salvage"), std::string::npos) << text;
      store_.reset();
      EXPECT_EQ(snapshot(), damaged) << "a refused folder is not touched";
      const FolderReport report = check();
      ASSERT_FALSE(report.damage.empty());
      EXPECT_TRUE(report.damage[0].file == c.file || report.damage[0].file == "/data/db/CURRENT" ||
                  report.damage[0].file == manifest)
          << report.damage[0].file;
      expect_nothing_lost(salvage());
    }
    restore(healthy);
    open();
  }
}

// A folder whose data has not yet come into any table.
TEST_F(Damaged, WithNothingButTheLogNothingIsLost) {
  options_.write_buffer_bytes = 4 << 20;
  open_with_queue();
  put_range(kStream, 1, kMessages, kBytes);
  TopologyChange change;
  change.puts = {{"queue//a", "{}"}, {"queue//b", "{}"}};
  ASSERT_FALSE(commit(*store_, change));
  change = {};
  change.erases = {"queue//a"};
  ASSERT_FALSE(commit(*store_, change));
  alive_ = all_alive();
  kill();
  topology_ = {{"queue//b", "{}"}};
  ASSERT_TRUE(files_->files_ending_in(".sst").empty());
  files_->remove("/data/db/CURRENT");
  EXPECT_NE(refusal().find("CURRENT"), std::string::npos);
  store_.reset();
  expect_nothing_lost(salvage());
}

TEST_F(Damaged, DefinitionsAndRecordsThatCannotBeRead) {
  fill_and_close();
  const auto healthy = snapshot();
  for (const char* family : {"topology", "queues", "default"}) {
    restore(healthy);
    for (const auto& table : tables_of(family)) {
      for (const auto& [what, part] : {std::pair{"a bad block", 0}, {"no table", 1}}) {
        SCOPED_TRACE(::testing::Message() << what << " in " << family);
        restore(healthy);
        part == 0 ? flip(table, 20) : files_->remove(table);
        // Of the family "default" only some keys are looked at.
        if (const std::string text = refusal(); std::string(family) != "default") {
          EXPECT_NE(text.find("--salvage"), std::string::npos) << text;
        }
        restore(healthy);
        part == 0 ? flip(table, 20) : files_->remove(table);
        EXPECT_TRUE(names(check(), table));
        const Alive left = salvage();
        // Messages whose record is lost all count as alive, and as delivered before.
        EXPECT_GE(left.at(7).size(), alive_[7].size());
        EXPECT_GE(left.at(8).size(), alive_[8].size());
        if (std::string(family) == "queues") {
          for (const auto& stream : recovered_.streams) {
            // The deleted queue comes back with what flushes had not dropped yet.
            if (stream.count == 0 || stream.stream.queue == kGone) continue;
            EXPECT_GE(stream.next.value, kMessages + 1);
            EXPECT_GE(stream.delivered_ceiling.value, kMessages);
          }
        } else {
          EXPECT_TRUE(missing(left).empty());
        }
        EXPECT_GT(recovered_.next_queue_id.value, 8u);
        if (std::string(family) != "topology") {
          EXPECT_EQ(recovered_.topology, topology_);
        }
      }
    }
  }
}

TEST_F(Damaged, ABadEntryInTheLogCostsThatEntry) {
  options_.write_buffer_bytes = 4 << 20;
  open_with_queue();
  for (std::uint64_t sequence = 1; sequence <= 120; ++sequence) {
    put_range(kStream, sequence, sequence, 300);
  }
  alive_ = all_alive();
  kill();
  const std::string log = only(".log");
  WalReader reader(*env_, log);
  std::vector<std::uint64_t> entries;
  while (const auto item = reader.next()) entries.push_back(item->offset);
  flip(log, entries[50] + 150);
  const FolderReport report = check();
  ASSERT_EQ(report.damage.size(), 1u);
  EXPECT_EQ(report.damage[0].file, log);
  auto lost = missing(salvage());
  EXPECT_EQ(lost[7], 1u) << "its neighbours can be read";
}

// However far a salvage came when the power went, the next start with or without it has it all:
// at every operation in a long run, at every few otherwise.
TEST_F(Damaged, ASalvageMayBeCutAnywhere) {
  const std::uint64_t stride = stoat::testing::is_long_run() ? 1 : 29;
  fill_and_close();
  flip(tables_of("messages").at(1), 20'000);
  const auto damaged = snapshot();
  const Alive expected = salvage();
  const Topology topology = recovered_.topology;
  std::mt19937_64 random(20261201);
  bool complete = false;
  for (std::uint64_t operations = random() % stride; !complete; operations += stride) {
    SCOPED_TRACE(::testing::Message() << "cut after " << operations);
    restore(damaged);
    files_->cut_after(operations);
    options_.salvage = true;
    try {
      open();
      complete = true;
    } catch (const StoreOpenError&) {
      ASSERT_TRUE(files_->is_cut());
    }
    store_.reset();
    complete = complete && !files_->is_cut();
    files_->power_up(operations % 2 == 0 ? &random : nullptr);
    open();
    ASSERT_EQ(all_alive(), expected);
    ASSERT_EQ(recovered_.topology, topology);
    close();
    options_.salvage = false;
    ASSERT_TRUE(check().damage.empty());
  }
}

// What a broker meets while it runs. The bad blocks are those that no start looks into.
TEST_F(Damaged, AReadAnswersWhatComesBeforeABadBlockAndThenTheError) {
  fill_and_close();
  const auto healthy = snapshot();
  int errors = 0;
  for (const auto& table : tables_of("messages")) {
    for (const std::size_t part : {1, 3, 5, 7}) {
      restore(healthy);
      flip(table, healthy.at(table).size() * part / 9);
      if (!refusal().empty()) continue;
      for (const QueueId queue : {kQueue, kOther}) errors += read_up_to_error(table, queue);
    }
  }
  EXPECT_GT(errors, 0);
}

TEST_F(Damaged, AMergeThatMeetsABadBlockEndsNothing) {
  std::mutex mutex;
  std::vector<std::string> lines;
  options_.on_log_line = [&](std::string_view line) {
    std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  fill_and_close();
  const auto healthy = snapshot();
  int merges = 0;
  for (const auto& table : tables_of("messages")) {
    // A table's first block is where RocksDB passes from one table to the next.
    const std::size_t size = healthy.at(table).size();
    for (const std::size_t at : {std::size_t{10}, size / 5, size * 2 / 5, size * 3 / 5}) {
      if (merges == 3) return;
      SCOPED_TRACE(::testing::Message() << table << " byte " << at);
      restore(healthy);
      flip(table, at);
      {
        // Before the start, which may merge at once.
        std::lock_guard lock(mutex);
        lines.clear();
      }
      if (!refusal().empty()) continue;
      const auto is_told = [&] {
        std::lock_guard lock(mutex);
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
          return line.find(table) != std::string::npos &&
                 line.find("--salvage") != std::string::npos;
        });
      };
      // So much of it dead that tables are merged; which of them, and whether they are rewritten,
      // depends on what the ordinary merges have done by then. So again until the bad one is.
      constexpr std::uint64_t kDead = 1500;
      constexpr int kMostMerges = 20;
      for (int merge = 0; merge < kMostMerges && !is_told(); ++merge) {
        const std::uint64_t first = kMessages + 1 + static_cast<std::uint64_t>(merge) * kDead;
        put_range(kStream, first, first + kDead - 1, kBytes);
        settle_range(kStream, first, first + kDead - 1, kBytes);
        for (int i = 0; i < 100 && !is_told(); ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }
      EXPECT_TRUE(is_told());
      ++merges;
      EXPECT_TRUE(failures_.empty()) << failures_[0];
      EXPECT_FALSE(commit(*store_, created(QueueId{10}))) << "it goes on";
      kill();
      const FolderReport report = check();
      EXPECT_GE(readable(report, kQueue) + kMostInABlock, alive_[7].size());
      EXPECT_GE(readable(report, kOther) + kMostInABlock, alive_[8].size());
    }
  }
  EXPECT_GT(merges, 0) << "every start was refused";
}

}  // namespace
}  // namespace stoat::store
