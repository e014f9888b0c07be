#include "client/session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "stoat/client/blocking.hpp"
#include "stoat/client/connection.hpp"
#include "tests/client/socket_peer.hpp"
#include "wire/basic.hpp"
#include "wire/confirm.hpp"
#include "wire/queue.hpp"

// The client over real sockets: what the machines' tests cannot show.

namespace stoat::client {
namespace {

using namespace std::chrono_literals;
using test::SocketPeer;
namespace basic = wire::basic;

ErrorKind kind_thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::closed;
}

// A blocking connection to the peer, which sees it through the login.
blocking::Connection connect(SocketPeer& peer,
                             ConnectionOptions options = ConnectionOptions("test"),
                             wire::connection::Tune tune = {2047, 131'072, 0}) {
  auto connecting = std::async(std::launch::async, [&] {
    return blocking::Connection::connect(peer.uri(), std::move(options));
  });
  peer.accept_and_log_in(tune);
  return connecting.get();
}

blocking::Channel open_channel(SocketPeer& peer, blocking::Connection& connection) {
  auto opening = std::async(std::launch::async, [&] { return connection.open_channel(); });
  peer.open_channel(1);
  return opening.get();
}

void close(SocketPeer& peer, blocking::Connection& connection) {
  auto closing = std::async(std::launch::async, [&] { connection.close(); });
  peer.answer_close();
  closing.get();
}

TEST(BlockingFace, PublishesConsumesAndCloses) {
  SocketPeer peer;
  auto connection = connect(peer);
  EXPECT_TRUE(connection.is_open());
  auto channel = open_channel(peer, connection);

  auto publishing = std::async(std::launch::async, [&] {
    return channel.publish("", "q", Message::persistent("hello"), {.mandatory = true});
  });
  peer.read<wire::confirm::Select>(1);
  peer.send(1, wire::confirm::SelectOk{});
  peer.read_publish(1);
  peer.send(1, basic::Nack{1, false, false});
  EXPECT_EQ(publishing.get().status, PublishStatus::nacked);

  auto consuming = std::async(std::launch::async, [&] { return channel.consume("q", {}, "me"); });
  peer.read<basic::Consume>(1);
  peer.send(1, basic::ConsumeOk{"me"});
  auto consumer = consuming.get();
  EXPECT_EQ(consumer.tag(), "me");
  EXPECT_FALSE(consumer.next_for(1ms));
  std::string content;
  wire::append_method(content, ChannelNumber(1), basic::Deliver{"me", 1, false, "", "q"});
  wire::append_content_header(content, ChannelNumber(1), 5, {"\0\0", 2});
  wire::append_body(content, ChannelNumber(1), "hello", 4096);
  peer.send_bytes(content);
  const auto delivery = consumer.next();
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->body, "hello");
  channel.ack(*delivery);
  EXPECT_EQ(peer.read<basic::Ack>(1).delivery_tag, 1u);

  close(peer, connection);
  EXPECT_FALSE(connection.is_open());
  EXPECT_FALSE(consumer.next()) << "our own close is the stream's end";
  EXPECT_EQ(kind_thrown_by([&] { channel.qos(1); }), ErrorKind::closed);
  EXPECT_TRUE(peer.reads_end());
}

TEST(BlockingFace, SettlesOnlyOnTheChannelItCameOn) {
  SocketPeer peer;
  auto connection = connect(peer);
  auto channel = open_channel(peer, connection);
  Delivery foreign;
  foreign.delivery_tag = 1;
  EXPECT_EQ(kind_thrown_by([&] { channel.ack(foreign); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_thrown_by([&] { channel.nack(foreign); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_thrown_by([&] { channel.reject(foreign, true); }), ErrorKind::invalid_argument);
  close(peer, connection);  // and no frame before it
}

TEST(Connect, FailsWithItsReason) {
  std::string closed_port;
  {
    SocketPeer gone;
    closed_port = gone.uri();
  }
  EXPECT_EQ(kind_thrown_by([&] { blocking::Connection::connect(closed_port); }),
            ErrorKind::network);
  EXPECT_EQ(kind_thrown_by([&] { blocking::Connection::connect("amqp://host:x"); }),
            ErrorKind::invalid_argument);
}

TEST(Connect, EndsAtItsTimeLimitWhenThePeerSaysNothing) {
  SocketPeer silent;  // the system takes the connection, nobody ever speaks
  ConnectionOptions options;
  options.connect_timeout = 50ms;
  EXPECT_EQ(kind_thrown_by([&] { blocking::Connection::connect(silent.uri(), options); }),
            ErrorKind::timeout);
}

TEST(TimeLimit, EndsAnRpcAndLeavesTheConnection) {
  SocketPeer peer;
  ConnectionOptions options;
  options.rpc_timeout = 50ms;
  auto connection = connect(peer, options);
  auto channel = open_channel(peer, connection);
  EXPECT_EQ(kind_thrown_by([&] { channel.purge_queue("q"); }), ErrorKind::timeout);
  peer.read<wire::queue::Purge>(1);
  peer.send(1, wire::queue::PurgeOk{1});
  EXPECT_TRUE(connection.is_open());
}

TEST(Heartbeats, RunInTheBackground) {
  SocketPeer peer;
  auto connection = connect(peer, ConnectionOptions(), {2047, 131'072, 1});
  auto channel = open_channel(peer, connection);
  EXPECT_TRUE(peer.next_is_heartbeat());
  // The peer sends none: the client gives up, without anybody having asked it for anything.
  EXPECT_TRUE(peer.reads_end());
  EXPECT_EQ(kind_thrown_by([&] { channel.qos(1); }), ErrorKind::network);
}

TEST(Destructors, EndWithoutAnAnswer) {
  SocketPeer peer;
  {
    auto connection = connect(peer);
    auto channel = open_channel(peer, connection);
  }
  peer.read<wire::channel::Close>(1);
  peer.read<wire::connection::Close>(0);
  EXPECT_TRUE(peer.reads_end());
}

TEST(Destructors, ChannelsMayOutliveTheirConnection) {
  SocketPeer peer;
  std::optional<blocking::Channel> channel;
  {
    auto connection = connect(peer);
    channel = open_channel(peer, connection);
  }
  EXPECT_EQ(kind_thrown_by([&] { channel->qos(1); }), ErrorKind::closed);
}

// 100 publishes without a confirm and a declare, and the peer's machine goes.
TEST(ConnectionReset, EndsEverythingPending) {
  SocketPeer peer;
  boost::asio::io_context io;
  std::vector<PublishResult> results;
  std::optional<ErrorKind> declared;
  const auto publish_one = [&](Channel& channel) -> boost::asio::awaitable<void> {
    results.push_back(co_await channel.publish("", "q", Message("body")));
  };
  const auto declare = [&](Channel& channel) -> boost::asio::awaitable<void> {
    try {
      co_await channel.declare_queue("q");
    } catch (const Error& error) {
      declared = error.kind();
    }
  };
  const auto program = [&]() -> boost::asio::awaitable<void> {
    auto connection = co_await Connection::connect(peer.uri());
    auto channel = co_await connection.open_channel();
    auto executor = co_await boost::asio::this_coro::executor;
    std::vector<std::future<void>> pending;
    for (int i = 0; i < 100; ++i)
      pending.push_back(
          boost::asio::co_spawn(executor, publish_one(channel), boost::asio::use_future));
    co_await declare(channel);
    while (results.size() < 100) co_await boost::asio::post(executor, boost::asio::use_awaitable);
  };
  auto done = boost::asio::co_spawn(io, program(), boost::asio::use_future);
  std::thread thread([&] { io.run(); });
  peer.accept_and_log_in();
  peer.open_channel(1);
  peer.read<wire::confirm::Select>(1);
  for (int i = 0; i < 100; ++i) peer.read_publish(1);
  peer.read<wire::queue::Declare>(1);
  peer.reset();
  thread.join();
  done.get();
  EXPECT_EQ(declared, ErrorKind::network);
  for (const PublishResult& result : results) EXPECT_EQ(result.status, PublishStatus::lost);
}

// One channel used from many threads at once; the peer confirms in runs.
TEST(Threads, MayShareAChannel) {
  constexpr int kPublishers = 8;
  constexpr int kEach = 50;
  SocketPeer peer;
  auto connection = connect(peer);
  auto channel = open_channel(peer, connection);
  std::atomic<int> acked{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kPublishers; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n)
        if (channel.publish("", "q", Message("body")).acked()) ++acked;
    });
  peer.read<wire::confirm::Select>(1);
  peer.send(1, wire::confirm::SelectOk{});
  for (std::uint64_t tag = 1; tag <= kPublishers * kEach; ++tag) {
    peer.read_publish(1);
    peer.send(1, basic::Ack{tag, true});
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(acked, kPublishers * kEach);
  close(peer, connection);
}

// The connection belongs to one executor, whoever awaits to another: each goes on on its own.
TEST(Executors, AwaitersGoOnOnTheirOwn) {
  SocketPeer peer;
  boost::asio::thread_pool connections(2);
  auto connecting =
      boost::asio::co_spawn(connections, Connection::connect(peer.uri()), boost::asio::use_future);
  peer.accept_and_log_in();
  Connection connection = connecting.get();

  boost::asio::io_context mine;
  std::thread::id resumed_on;
  const auto program = [&]() -> boost::asio::awaitable<void> {
    auto channel = co_await connection.open_channel();
    resumed_on = std::this_thread::get_id();
    co_await connection.close();
  };
  auto done = boost::asio::co_spawn(mine, program(), boost::asio::use_future);
  auto answering = std::async(std::launch::async, [&] {
    peer.open_channel(1);
    peer.answer_close();
  });
  mine.run();  // has work for as long as the coroutine waits
  done.get();
  answering.get();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
  connections.join();
}

}  // namespace
}  // namespace stoat::client
