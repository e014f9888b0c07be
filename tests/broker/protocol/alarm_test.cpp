// Memory and disk alarms: publishers are told and no longer read, the others go on.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "tests/broker/protocol/protocol_test.hpp"
#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

constexpr std::uint64_t kMb = 1'000'000;
// More than what others on the machine write or free while the test runs.
constexpr std::uint64_t kMarginMb = 1024;

class Alarms : public ProtocolTest {
 protected:
  void SetUp() override { STOAT_NEEDS_OWN_BROKER(); }
  void TearDown() override {}  // the shared broker was not used

  static void always_on(broker::Config& config) {
    config.disk_alarm_free_mb = std::uint64_t{1} << 40;
  }
};

TEST_F(Alarms, APublisherIsBlockedAndToldWhy) {
  TestBroker broker(always_on);
  WireClient client(broker.port(), ConnectOptions{});
  client.declare_queue(1, "q");  // declaring is not publishing
  client.publish(1, "", "q", "m");
  const auto blocked = client.expect<connection::Blocked>(0);
  EXPECT_NE(blocked.reason.text.find("disk"), std::string_view::npos) << blocked.reason.text;
  client.publish(1, "", "q", "not read");
  client.send(1, queue::Purge{0, "q", false});
  client.nothing_within(300ms);  // it is told once, and nothing of it is read
}

TEST_F(Alarms, TheMemoryAlarmDoesTheSame) {
  TestBroker broker([](broker::Config& config) { config.memory_alarm_fraction = 0.000001; });
  WireClient client(broker.port(), ConnectOptions{});
  client.publish(1, "", "q", "m");
  const auto blocked = client.expect<connection::Blocked>(0);
  EXPECT_NE(blocked.reason.text.find("memory"), std::string_view::npos) << blocked.reason.text;
}

TEST_F(Alarms, ConsumersGoOn) {
  TestBroker broker(always_on);
  WireClient consumer(broker.port(), ConnectOptions{}), publisher(broker.port(), ConnectOptions{});
  consumer.declare_queue(1, "q");
  consumer.consume(1, "q");
  publisher.publish(1, "", "nobody", "m");
  publisher.expect<connection::Blocked>(0);
  consumer.nothing_within(kQuiet);  // it never published, so it is told nothing
  consumer.declare_queue(1, "another");
  consumer.cancel(1, "nobody");
  consumer.close();
}

TEST_F(Alarms, AClientThatCannotHearItIsHeldBackSilently) {
  TestBroker broker(always_on);
  ConnectOptions options;
  options.client_properties = {};
  WireClient client(broker.port(), options);
  client.publish(1, "", "q", "m");
  client.nothing_within(kQuiet);
  client.send(1, queue::Purge{0, "q", false});
  client.nothing_within(kQuiet);
}

TEST_F(Alarms, ABlockedPublisherIsNotTakenForDead) {
  TestBroker broker(always_on);
  ConnectOptions options;
  options.heartbeat = 1;
  WireClient client(broker.port(), options);
  client.publish(1, "", "q", "m");
  client.expect<connection::Blocked>(0);
  // It is not read, so its silence counts for nothing; the broker's heartbeats go on.
  const std::uint64_t before = client.heartbeats_received();
  client.nothing_within(4s);
  EXPECT_GE(client.heartbeats_received(), before + 3);
}

TEST_F(Alarms, UnblockedFollowsWhenTheDiskHasRoomAgain) {
  TempDir folder;
  const std::uint64_t free_mb = std::filesystem::space(folder.path()).available / kMb;
  if (free_mb < 4 * kMarginMb) GTEST_SKIP() << "needs " << 4 * kMarginMb << " MB of free disk";
  TestBroker broker(
      [&](broker::Config& config) { config.disk_alarm_free_mb = free_mb - kMarginMb; });
  WireClient client(broker.port(), ConnectOptions{});
  client.declare_queue(1, "q");
  client.publish(1, "", "q", "before");
  ASSERT_EQ(client.get(1, "q")->body, "before");

  const auto ballast = folder.path() / "ballast";
  const int fd = open(ballast.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const int failed = posix_fallocate(fd, 0, static_cast<off_t>(2 * kMarginMb * kMb));
  ::close(fd);
  if (failed != 0) GTEST_SKIP() << "this file system has no fallocate";

  client.expect<connection::Blocked>(0);
  client.publish(1, "", "q", "while blocked");
  client.send(1, basic::Get{0, "q", true});
  client.nothing_within(kQuiet);
  std::filesystem::remove(ballast);
  client.expect<connection::Unblocked>(0);
  EXPECT_EQ(client.expect_content<basic::GetOk>(1).body, "while blocked") << "taken up, not lost";
}

}  // namespace
}  // namespace stoat::test
