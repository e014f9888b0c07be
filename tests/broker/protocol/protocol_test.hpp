#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/wire_client.hpp"

// Skips a test of what StoatMQ decided for itself when the suite runs against another broker.
#define STOAT_OWN_CHOICE(why) \
  if (::stoat::test::against_another_broker()) GTEST_SKIP() << "StoatMQ's own choice: " << (why)
// Skips a test that starts a broker of its own.
#define STOAT_NEEDS_OWN_BROKER() \
  if (::stoat::test::against_another_broker()) GTEST_SKIP() << "needs a broker of its own"

namespace stoat::test {

using namespace wire;           // NOLINT: tests are all AMQP names
using namespace std::literals;  // NOLINT

bool against_another_broker();

// Long enough for what a broker would wrongly send to arrive.
inline constexpr milliseconds kQuiet{120};

// A test that talks AMQP to the one broker that all tests of the process share. Names come from
// name(), queue() and exchange(), so that tests do not meet; what they named is deleted at the end,
// which also shows that the broker still answers.
class ProtocolTest : public testing::Test {
 protected:
  static std::uint16_t port();
  static WireClient connect(const ConnectOptions& options = {}) {
    return WireClient(port(), options);
  }
  // Unique to this test and run.
  std::string name(std::string_view stem) const;
  // Likewise, and deleted at the end.
  std::string queue(std::string_view stem = "q");
  std::string exchange(std::string_view stem = "x");

  // Passive declare; a 404 closes the channel, which is opened again.
  static bool queue_exists(WireClient& client, std::string_view queue);
  // Waits for what a broker does after its answer: deleting an auto-delete queue, returning the
  // messages of a lost connection. False when it does not come about in time.
  static bool eventually(const std::function<bool()>& condition);

  void TearDown() override;

 private:
  std::vector<std::string> queues_;
  std::vector<std::string> exchanges_;
};

}  // namespace stoat::test
