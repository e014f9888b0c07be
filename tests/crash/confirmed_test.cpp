// What was confirmed is there after kill -9: all of it, once, in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/crash/confirmed_publisher.hpp"
#include "tests/support/broker_process.hpp"

namespace stoat::test {
namespace {

using namespace wire;           // NOLINT: tests are all AMQP names
using namespace std::literals;  // NOLINT

void expect_ascending_and_complete(const std::vector<std::uint64_t>& ids,
                                   const std::vector<std::uint64_t>& confirmed) {
  EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end())
      << "out of order, or twice";
  std::vector<std::uint64_t> missing;
  std::set_difference(confirmed.begin(), confirmed.end(), ids.begin(), ids.end(),
                      std::back_inserter(missing));
  EXPECT_TRUE(missing.empty()) << missing.size() << " confirmed messages are missing, the first is "
                               << missing.front();
}

TEST(Confirmed, FiftyThousandAreAllThereInOrder) {
  BrokerProcess broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    client.declare_queue(1, "q", {}, true);
  }
  ConfirmedPublisher publisher({"", "q"}, 0);
  publisher.publish(broker.port(), 50'000, [](std::uint64_t id) { return 12 + id % 200; });
  broker.kill9();
  broker.start();
  WireClient client(broker.port(), ConnectOptions{});
  const auto ids = ids_of(take_all(client, "q"));
  EXPECT_EQ(ids.size(), 50'000u);
  expect_ascending_and_complete(ids, publisher.confirmed());
  EXPECT_EQ(client.ready_count(1, "q"), 0u);
}

TEST(Confirmed, AtARandomMomentInEveryQueue) {
  BrokerProcess broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    client.call<exchange::DeclareOk>(
        1, exchange::Declare{0, "x", "fanout", false, true, false, false, false, {}});
    for (const char* q : {"a", "b"}) {
      client.declare_queue(1, q, {}, true);
      client.bind(1, q, "x", "");
    }
  }
  std::minstd_rand random(20260101);
  std::uint64_t first = 0;
  for (int round = 0; round < crash_rounds(20); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ConfirmedPublisher publisher({"x", ""}, first);
    // Mostly small ones, and one of a mebibyte now and then.
    std::thread thread([&, port = broker.port()] {
      publisher.publish_until_lost(port, 200'000, [](std::uint64_t id) {
        return id % 97 == 0 ? std::size_t{1} << 20 : std::size_t{12} + id % 2000;
      });
    });
    std::this_thread::sleep_for(milliseconds(5 + random() % 200));
    broker.kill9();
    thread.join();
    broker.start();
    WireClient client(broker.port(), ConnectOptions{});
    for (const char* q : {"a", "b"}) {
      SCOPED_TRACE(q);
      const auto messages = take_all(client, q);
      expect_ascending_and_complete(ids_of(messages), publisher.confirmed());
      // Of what an earlier round took, the broker may have had the last group still in hand.
      for (const Delivery& message : messages) {
        if (ConfirmedPublisher::id_of(message.body) >= first) break;
        ASSERT_TRUE(message.method.redelivered) << "it was delivered before the last kill";
      }
    }
    client.close();
    first = publisher.next_id();
  }
}

TEST(Confirmed, TransactionsAreInAllTheirQueuesOrInNone) {
  BrokerProcess broker;
  {
    WireClient client(broker.port(), ConnectOptions{});
    for (const char* q : {"a", "b", "c"}) client.declare_queue(1, q, {}, true);
  }
  std::minstd_rand random(4711);
  for (int round = 0; round < crash_rounds(8); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::uint64_t committed = 0;
    std::thread thread([&, port = broker.port()] {
      Properties persistent;
      persistent.delivery_mode = 2;
      try {
        WireClient client(port, ConnectOptions{});
        client.call<tx::SelectOk>(1, tx::Select{});
        for (std::uint64_t id = 1;; ++id) {
          const std::string body = std::to_string(1'000'000'000'000 + id).substr(1);
          for (const char* q : {"a", "b", "c"}) client.publish(1, "", q, body, persistent);
          client.call<tx::CommitOk>(1, tx::Commit{});
          committed = id;
        }
      } catch (const std::exception&) {
        // The broker is gone.
      }
    });
    std::this_thread::sleep_for(milliseconds(20 + random() % 150));
    broker.kill9();
    thread.join();
    broker.start();
    WireClient client(broker.port(), ConnectOptions{});
    const auto a = ids_of(take_all(client, "a"));
    EXPECT_EQ(ids_of(take_all(client, "b")), a);
    EXPECT_EQ(ids_of(take_all(client, "c")), a);
    ASSERT_GE(a.size(), committed) << "a committed transaction is missing";
    ASSERT_LE(a.size(), committed + 1);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], i + 1);
    client.close();
  }
}

}  // namespace
}  // namespace stoat::test
