#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "stoat/client/blocking.hpp"
#include "stoat/client/connection.hpp"
#include "tests/support/test_broker.hpp"

// The client against a whole broker. STOAT_TEST_PORT=5672 runs it against the broker that listens
// there.

namespace stoat::client {
namespace {

using namespace std::chrono_literals;

std::uint16_t broker_port() {
  if (const auto port = stoat::test::external_port()) return *port;
  static stoat::test::TestBroker broker;
  return broker.port();
}

std::string uri_of(std::uint16_t port) {
  return "amqp://127.0.0.1:" + std::to_string(port);
}

std::optional<Error> error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

class EndToEnd : public testing::Test {
 protected:
  // A queue of this test alone, gone with the connection.
  std::string own_queue(Table arguments = {}) {
    return channel.declare_queue("", {.exclusive = true}, std::move(arguments)).name;
  }
  Delivery must_get(const std::string& queue) {
    auto delivery = channel.get(queue);
    if (delivery) return *delivery;
    ADD_FAILURE() << "the queue is empty";
    return {};
  }

  blocking::Connection connection =
      blocking::Connection::connect(uri_of(broker_port()), ConnectionOptions("end to end"));
  blocking::Channel channel = connection.open_channel();
};

TEST_F(EndToEnd, TopicMessagesAreRoutedConfirmedDeliveredAndAcked) {
  channel.declare_exchange("e2e.topic", "topic");
  const std::string queue = own_queue();
  channel.bind_queue(queue, "e2e.topic", "orders.*.created");
  channel.bind_queue(queue, "e2e.topic", "orders.#");
  channel.qos(10);
  auto consumer = channel.consume(queue);
  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(channel
                    .publish("e2e.topic", "orders.eu.created",
                             Message::persistent("order " + std::to_string(i)))
                    .acked());
  for (int i = 0; i < 50; ++i) {
    const auto delivery = consumer.next_for(10s);
    ASSERT_TRUE(delivery);
    EXPECT_EQ(delivery->body, "order " + std::to_string(i));
    EXPECT_EQ(delivery->exchange, "e2e.topic");
    EXPECT_EQ(delivery->routing_key, "orders.eu.created");
    EXPECT_FALSE(delivery->redelivered);
    EXPECT_EQ(delivery->properties().delivery_mode, kPersistent);
    channel.ack(*delivery);
  }
  consumer.cancel();
  EXPECT_FALSE(consumer.next());
  channel.delete_exchange("e2e.topic");
  EXPECT_EQ(channel.declare_queue(queue, {.passive = true}).message_count, 0u);
}

TEST_F(EndToEnd, AMandatoryMessageNobodyIsBoundForIsReturned) {
  const std::string queue = own_queue();
  const PublishResult nowhere =
      channel.publish("", "e2e.no.such.queue", Message("x"), {.mandatory = true});
  EXPECT_EQ(nowhere.status, PublishStatus::returned);
  EXPECT_EQ(nowhere.code, 312);
  EXPECT_EQ(nowhere.text, "NO_ROUTE");
  EXPECT_TRUE(channel.publish("", queue, Message("x"), {.mandatory = true}).acked());
  EXPECT_TRUE(channel.publish("", "e2e.no.such.queue", Message("x")).acked()) << "not mandatory";
}

TEST_F(EndToEnd, ChannelErrorsCarryCodeAndTextAndTheConnectionGoesOn) {
  const auto missing = error_of([&] { channel.declare_queue("e2e.missing", {.passive = true}); });
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->kind(), ErrorKind::channel_closed);
  EXPECT_EQ(missing->reply_code(), 404);
  EXPECT_NE(missing->reply_text().find("no queue 'e2e.missing' in vhost '/'"), std::string::npos)
      << missing->reply_text();
  EXPECT_EQ(error_of([&] { channel.qos(1); })->reply_code(), 404);

  auto other = connection.open_channel();
  const std::string queue = other.declare_queue("e2e.own", {.exclusive = true}).name;
  const auto inequivalent = error_of([&] {
    other.declare_queue(queue, {.exclusive = true}, {{"x-max-length", 5}});
  });
  ASSERT_TRUE(inequivalent);
  EXPECT_EQ(inequivalent->reply_code(), 406);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(EndToEnd, AnUnknownExchangeLosesThePublish) {
  const PublishResult result = channel.publish("e2e.no.such.exchange", "k", Message("x"));
  EXPECT_EQ(result.status, PublishStatus::lost);
  EXPECT_EQ(result.code, 404);
}

TEST_F(EndToEnd, RefusedLoginsAreTold) {
  const std::string port = std::to_string(broker_port());
  const auto password =
      error_of([&] { blocking::Connection::connect("amqp://guest:no@127.0.0.1:" + port); });
  ASSERT_TRUE(password);
  EXPECT_EQ(password->kind(), ErrorKind::access_refused);
  EXPECT_EQ(password->reply_code(), 403);
  const auto vhost =
      error_of([&] { blocking::Connection::connect("amqp://127.0.0.1:" + port + "/nope"); });
  ASSERT_TRUE(vhost);
  EXPECT_EQ(vhost->kind(), ErrorKind::access_refused);
  EXPECT_EQ(vhost->reply_code(), 530);
}

TEST_F(EndToEnd, SettlesAndRedelivers) {
  const std::string queue = own_queue();
  for (const char* body : {"1", "2", "3"}) channel.publish("", queue, Message(body));
  const Delivery first = must_get(queue);
  EXPECT_EQ(first.body, "1");
  EXPECT_FALSE(first.redelivered);
  EXPECT_EQ(first.message_count, 2u);
  channel.nack(first);
  const Delivery again = must_get(queue);
  EXPECT_EQ(again.body, "1");
  EXPECT_TRUE(again.redelivered);
  channel.reject(again, false);
  const Delivery second = must_get(queue);
  channel.ack(must_get(queue), {.multiple = true});
  EXPECT_EQ(second.body, "2");
  EXPECT_FALSE(channel.get(queue));
  const auto twice = [&] {
    channel.ack(second);
    channel.qos(1);  // the answer to the ack that was one too many
  };
  EXPECT_EQ(error_of(twice)->reply_code(), 406);
}

TEST_F(EndToEnd, PurgeAndDeleteCountWhatWasReady) {
  const std::string queue = own_queue();
  for (int i = 0; i < 3; ++i) channel.publish("", queue, Message("x"));
  EXPECT_EQ(channel.purge_queue(queue), 3u);
  channel.publish("", queue, Message("x"));
  EXPECT_EQ(channel.delete_queue(queue), 1u);
}

TEST_F(EndToEnd, UnbindEndsTheRoute) {
  const std::string queue = own_queue();
  channel.bind_queue(queue, "amq.direct", "e2e.key");
  EXPECT_TRUE(channel.publish("amq.direct", "e2e.key", Message("x"), {.mandatory = true}).acked());
  channel.unbind_queue(queue, "amq.direct", "e2e.key");
  EXPECT_EQ(channel.publish("amq.direct", "e2e.key", Message("x"), {.mandatory = true}).status,
            PublishStatus::returned);
}

TEST_F(EndToEnd, ADeletedQueueCancelsItsConsumer) {
  const std::string queue = own_queue();
  auto consumer = channel.consume(queue);
  auto other = connection.open_channel();
  other.delete_queue(queue);
  const auto cancelled = error_of([&] { consumer.next_for(10s); });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->kind(), ErrorKind::consumer_cancelled);
  channel.qos(1);  // only the consumer is gone
}

TEST_F(EndToEnd, ADroppedConsumerLeavesNothingUnsettled) {
  const std::string queue = own_queue();
  for (int i = 0; i < 5; ++i) channel.publish("", queue, Message(std::to_string(i)));
  {
    auto consumer = channel.consume(queue);
    ASSERT_TRUE(consumer.next_for(10s));
  }
  channel.qos(0);  // after the cancel and the nacks on this channel
  auto consumer = channel.consume(queue);
  for (int i = 1; i < 5; ++i) {
    const auto delivery = consumer.next_for(10s);
    ASSERT_TRUE(delivery);
    EXPECT_EQ(delivery->body, std::to_string(i));
    channel.ack(*delivery);
  }
}

TEST_F(EndToEnd, PropertiesArriveAsTheyWere) {
  const std::string queue = own_queue();
  Message message("body");
  Properties& sent = message.properties;
  sent.content_type = "text/plain";
  sent.content_encoding = "utf-8";
  sent.headers = Table{{"int", std::int32_t{7}},
                       {"text", "value"},
                       {"list", wire::Array{FieldValue(true), FieldValue(2.5)}},
                       {"nested", Table{{"void", wire::Void{}}}}};
  sent.delivery_mode = kTransient;
  sent.priority = std::uint8_t{3};
  sent.correlation_id = "c1";
  sent.reply_to = "answers";
  sent.expiration = "60000";
  sent.message_id = "m1";
  sent.timestamp = 1'700'000'000;
  sent.type = "order";
  sent.user_id = "guest";
  sent.app_id = "e2e";
  const std::string encoded = sent.encode();
  EXPECT_TRUE(channel.publish("", queue, std::move(message)).acked());
  EXPECT_EQ(must_get(queue).raw_properties, encoded);
}

TEST_F(EndToEnd, BodiesOfAnySizePassAnyFrameMax) {
  const std::string queue = own_queue();
  ConnectionOptions small_frames("small frames");
  small_frames.frame_max_bytes = 4096;
  auto other = blocking::Connection::connect(uri_of(broker_port()), small_frames);
  auto sender = other.open_channel();
  for (const std::size_t size : {0, 1, 4087, 4088, 4089, 8176, 8177, 1 << 20}) {
    SCOPED_TRACE(size);
    std::string body(size, ' ');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + i / 4088);
    EXPECT_TRUE(sender.publish("", queue, Message(body)).acked());
    const Delivery in_large_frames = must_get(queue);
    EXPECT_EQ(in_large_frames.body, body);
    EXPECT_TRUE(channel.publish("", queue, Message(body)).acked());
    channel.ack(must_get(queue));
  }
}

TEST_F(EndToEnd, ManyCoroutinesShareAChannelAndKeepTheirOrder) {
  constexpr int kMessages = 2000;
  const std::string uri = uri_of(broker_port());
  boost::asio::io_context io;
  int acked = 0;
  std::vector<std::string> received;
  const auto publish_one = [&](Channel& on, std::string queue,
                               int i) -> boost::asio::awaitable<void> {
    const auto result = co_await on.publish("", queue, Message(std::to_string(i)));
    if (result.acked()) ++acked;
  };
  const auto program = [&]() -> boost::asio::awaitable<void> {
    auto own = co_await Connection::connect(uri);
    auto publishing = co_await own.open_channel();
    auto consuming = co_await own.open_channel();
    const QueueInfo queue = co_await consuming.declare_queue("", {.exclusive = true});
    for (int i = 0; i < kMessages; ++i)
      boost::asio::co_spawn(io, publish_one(publishing, queue.name, i),
                            [](std::exception_ptr error) {
                              if (error) std::rethrow_exception(error);
                            });
    auto consumer = co_await consuming.consume(queue.name);
    while (received.size() < kMessages) {
      const auto delivery = co_await consumer.next_for(10s);
      if (!delivery) break;
      received.push_back(delivery->body);
      consuming.ack(*delivery);
    }
    while (acked < kMessages) co_await publishing.qos(0);
    co_await own.close();
  };
  auto done = boost::asio::co_spawn(io, program(), boost::asio::use_future);
  io.run();
  done.get();
  ASSERT_EQ(received.size(), static_cast<std::size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(received[i], std::to_string(i));
  EXPECT_EQ(acked, kMessages);
}

TEST(EndToEndStop, EndsWhatIsPendingWithTheBrokersReason) {
  if (stoat::test::external_port()) GTEST_SKIP() << "needs a broker of its own";
  stoat::test::TestBroker broker;
  auto connection = blocking::Connection::connect(uri_of(broker.port()));
  auto channel = connection.open_channel();
  channel.declare_queue("e2e.durable", {.durable = true});
  EXPECT_TRUE(channel.publish("", "e2e.durable", Message::persistent("kept")).acked());
  const std::string queue = channel.declare_queue("", {.exclusive = true}).name;
  auto consumer = channel.consume(queue);
  auto waiting = std::async(std::launch::async, [&] { return consumer.next(); });
  broker.restart();
  const auto stopped = error_of([&] { waiting.get(); });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->kind(), ErrorKind::connection_closed);
  EXPECT_EQ(stopped->reply_code(), 320);
  EXPECT_EQ(error_of([&] { channel.qos(1); })->reply_code(), 320);

  auto again = blocking::Connection::connect(uri_of(broker.port()));
  auto delivery = again.open_channel().get("e2e.durable");
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->body, "kept");
}

}  // namespace
}  // namespace stoat::client
