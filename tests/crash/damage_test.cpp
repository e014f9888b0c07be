// A data folder with damage on its disk, and the real stoatd: what --check says, what a running
// broker does with what it cannot read, what --salvage keeps.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;  // NOLINT: tests are all AMQP names
namespace fs = std::filesystem;

constexpr std::uint64_t kMessages = 20'000;
constexpr std::size_t kBytes = 1000;
// Twice what a block holds: more must not go with it.
constexpr std::size_t kMostLost = 70;

struct Ended {
  int code;
  std::string output;
};

class DamagedFolder : public testing::Test {
 protected:
  // Queues a and b, full, in tables.
  void SetUp() override {
    {
      WireClient client(broker_.port(), ConnectOptions{});
      for (const char* q : {"a", "b"}) client.declare_queue(1, q, {}, true);
      client.close();
    }
    for (const char* q : {"a", "b"}) {
      ConfirmedPublisher({"", q}, 0).publish(broker_.port(), kMessages, [](auto) {
        return kBytes;
      });
    }
    ASSERT_EQ(broker_.terminate().code, 0);
  }

  Ended check() {
    BrokerProcess::Options options;
    options.data_dir = broker_.data_dir();
    options.arguments = {"--check"};
    options.wait_until_listening = false;
    BrokerProcess process(std::move(options));
    const ExitStatus status = process.wait();
    EXPECT_TRUE(status.exited);
    return {status.code, process.log()};
  }

  // The table that begins with the first queue's messages.
  fs::path largest_table() {
    fs::path largest;
    for (const auto& entry : fs::directory_iterator(broker_.data_dir() / "db")) {
      if (entry.path().extension() != ".sst") continue;
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    return largest;
  }
  static void flip(const fs::path& file, std::uint64_t at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 0x55);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }
  std::map<std::string, std::string> snapshot() {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(broker_.data_dir())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      all[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return all;
  }
  std::vector<std::uint64_t> ids_in(const char* queue) {
    WireClient client(broker_.port(), ConnectOptions{});
    const auto ids = ids_of(take_all(client, queue));
    client.close();
    return ids;
  }
  static std::vector<std::uint64_t> all_ids() {
    std::vector<std::uint64_t> ids(kMessages);
    for (std::uint64_t id = 0; id < kMessages; ++id) ids[id] = id;
    return ids;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  BrokerProcess broker_;
};

TEST_F(DamagedFolder, CheckTellsAWholeFolderFromADamagedOneAndChangesNeither) {
  const auto whole = snapshot();
  Ended ended = check();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(has(ended.output, "queue 'a' in vhost '/': 20000 of 20000 messages\n"))
      << ended.output;
  EXPECT_EQ(snapshot(), whole);

  const fs::path table = largest_table();
  flip(table, fs::file_size(table) / 4);
  const auto damaged = snapshot();
  ended = check();
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(has(ended.output, "damaged: " + table.string())) << ended.output;
  EXPECT_TRUE(has(ended.output, "cannot be read")) << ended.output;
  EXPECT_EQ(snapshot(), damaged);

  broker_.start();
  ended = check();
  EXPECT_EQ(ended.code, 2) << "a broker is running on it";
  EXPECT_TRUE(has(ended.output, "in use")) << ended.output;
}

TEST_F(DamagedFolder, CheckOfNothingIsNoSuccess) {
  BrokerProcess::Options options;
  options.data_dir = broker_.data_dir() / "absent";
  options.arguments = {"--check"};
  options.wait_until_listening = false;
  BrokerProcess process(std::move(options));
  EXPECT_EQ(process.wait().code, 2);
  EXPECT_TRUE(has(process.log(), "absent")) << process.log();
  EXPECT_FALSE(fs::exists(broker_.data_dir() / "absent"));
}

TEST_F(DamagedFolder, AQueueThatCannotBeReadIsSaidAndOthersGoOn) {
  const fs::path table = largest_table();
  flip(table, fs::file_size(table) / 4);
  broker_.start();
  WireClient client(broker_.port(), ConnectOptions{});
  client.consume(1, "a", "reader", true);
  std::uint64_t got = 0;
  while (true) {
    const Frame frame = client.take(1, "a delivery or basic.cancel");
    if (frame.kind == FrameDecoder::Kind::body) ++got;
    if (frame.kind != FrameDecoder::Kind::method) continue;
    if (peek_method_id(*frame.payload) == basic::Cancel::kId) break;
  }
  EXPECT_GT(got, 0u);
  EXPECT_LT(got, kMessages);
  // The queue is there, with the rest of its messages, and says so when asked.
  EXPECT_EQ(client.ready_count(1, "a"), kMessages - got);
  client.send(1, basic::Get{0, "a", true});
  const std::string text = client.expect_channel_close(1, 404);
  EXPECT_TRUE(has(text, "queue 'a' in vhost '/' cannot be read from disk")) << text;
  // A consumer that comes again is told again.
  client.open_channel(2);
  client.consume(2, "a", "again", true);
  client.expect<basic::Cancel>(2);
  const std::string log = broker_.log();
  EXPECT_TRUE(has(log, "queue 'a' in vhost '/' cannot be read")) << log;
  EXPECT_TRUE(has(log, table.string())) << log;

  // The others are none the worse, and it takes what is published and purged.
  EXPECT_EQ(ids_in("b"), all_ids());
  ConfirmedPublisher({"", "a"}, kMessages).publish(broker_.port(), 100);
  EXPECT_EQ(client.ready_count(2, "a"), kMessages - got + 100);
  client.call<queue::PurgeOk>(2, queue::Purge{0, "a", false});
  ConfirmedPublisher({"", "a"}, 7).publish(broker_.port(), 3);
  EXPECT_EQ(ids_in("a"), (std::vector<std::uint64_t>{7, 8, 9}));
  EXPECT_EQ(broker_.terminate().code, 0);
}

TEST_F(DamagedFolder, SalvageKeepsAllButTheBadBlock) {
  const fs::path table = largest_table();
  flip(table, fs::file_size(table) / 4);
  BrokerProcess::Options options;
  options.data_dir = broker_.data_dir();
  options.arguments = {"--salvage"};
  {
    BrokerProcess salvaging(std::move(options));
    const std::string log = salvaging.log();
    EXPECT_TRUE(has(log, "salvage: damaged: " + table.string())) << log;
    EXPECT_TRUE(has(log, "salvage: queue 'a' in vhost '/': ")) << log;
    EXPECT_TRUE(has(log, "salvage: queue 'b' in vhost '/': 20000 of 20000 messages")) << log;
    EXPECT_TRUE(has(log, "db.damaged")) << log;
    EXPECT_EQ(salvaging.terminate().code, 0);
  }
  EXPECT_TRUE(fs::exists(broker_.data_dir() / "db.damaged" / table.filename()));
  EXPECT_EQ(check().code, 0);
  broker_.start();
  const auto ids = ids_in("a");
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_LT(ids.size(), kMessages);
  EXPECT_GE(ids.size() + kMostLost, kMessages);
  EXPECT_EQ(ids_in("b"), all_ids());
}

TEST_F(DamagedFolder, AKilledSalvageIsBegunAnew) {
  const fs::path table = largest_table();
  flip(table, fs::file_size(table) / 4);
  BrokerProcess::Options options;
  options.data_dir = broker_.data_dir();
  options.arguments = {"--salvage"};
  options.wait_until_listening = false;
  for (int round = 0; round < crash_rounds(4); ++round) {
    BrokerProcess salvaging(options);
    std::this_thread::sleep_for(milliseconds(10 + round * 37 % 400));
    salvaging.kill9();
  }
  options.wait_until_listening = true;
  { BrokerProcess salvaging(options); }
  broker_.start();
  EXPECT_GE(ids_in("a").size() + kMostLost, kMessages);
  EXPECT_EQ(ids_in("b"), all_ids());
}

}  // namespace
}  // namespace stoat::test
