#include "client/channel_machine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/client/conversation.hpp"

namespace stoat::client {
namespace {

using namespace std::chrono_literals;
using test::Answer;
using test::Conversation;
using Next = Answer<std::optional<Delivery>>;
namespace basic = wire::basic;
namespace channel = wire::channel;
namespace queue = wire::queue;

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    talk.log_in({2047, 131072, 0});
    ch = &talk.open_channel();
  }
  // A consumer that has its consume-ok.
  ChannelMachine::Subscription consume(ConsumeOptions options = {}, std::string tag = {}) {
    Answer<ChannelMachine::Subscription> answer;
    ch->consume("q", std::move(tag), options, {}, answer.completion());
    const std::string sent_tag = talk.sent<basic::Consume>(1).consumer_tag.str();
    talk.send(1, basic::ConsumeOk{sent_tag});
    EXPECT_TRUE(answer.succeeded());
    EXPECT_EQ(answer.value().consumer_tag, sent_tag);
    return answer.value();
  }
  void deliver(const std::string& consumer_tag, std::uint64_t tag, std::string_view body) {
    talk.send_content(1, basic::Deliver{consumer_tag, tag, tag % 2 == 0, "shop", "key"}, body);
  }

  Conversation talk;
  ChannelMachine* ch;
};

TEST_F(ChannelTest, SendsWhatItIsAskedAndReadsTheReplies) {
  Answer<void> declared_exchange, bound, unbound, qos, deleted_exchange;
  Answer<QueueInfo> declared;
  Answer<std::uint32_t> purged, deleted;

  ch->declare_exchange("shop", "topic", {.durable = true, .internal = true},
                       {{"alternate-exchange", "other"}}, declared_exchange.completion());
  const auto exchange = talk.sent<wire::exchange::Declare>(1);
  EXPECT_EQ(exchange.exchange.text, "shop");
  EXPECT_EQ(exchange.type.text, "topic");
  EXPECT_TRUE(exchange.durable && exchange.internal);
  EXPECT_FALSE(exchange.passive || exchange.auto_delete || exchange.no_wait);
  EXPECT_EQ(*exchange.arguments.find("alternate-exchange")->as_string(), "other");
  talk.send(1, wire::exchange::DeclareOk{});
  EXPECT_TRUE(declared_exchange.succeeded());

  ch->declare_queue("", {.exclusive = true, .auto_delete = true}, {}, declared.completion());
  const auto declare = talk.sent<queue::Declare>(1);
  EXPECT_TRUE(declare.exclusive && declare.auto_delete);
  EXPECT_FALSE(declare.passive || declare.durable || declare.no_wait);
  talk.send(1, queue::DeclareOk{"amq.gen-1", 3, 2});
  ASSERT_TRUE(declared.succeeded());
  EXPECT_EQ(declared.value().name, "amq.gen-1");
  EXPECT_EQ(declared.value().message_count, 3u);
  EXPECT_EQ(declared.value().consumer_count, 2u);

  ch->bind_queue("q", "shop", "a.*", {{"x", 1}}, bound.completion());
  const auto bind = talk.sent<queue::Bind>(1);
  EXPECT_EQ(bind.queue.str() + '|' + bind.exchange.str() + '|' + bind.routing_key.str(),
            "q|shop|a.*");
  EXPECT_EQ(bind.arguments.size(), 1u);
  talk.send(1, queue::BindOk{});
  EXPECT_TRUE(bound.succeeded());

  ch->unbind_queue("q", "shop", "a.*", {}, unbound.completion());
  EXPECT_EQ(talk.sent<queue::Unbind>(1).routing_key.text, "a.*");
  talk.send(1, queue::UnbindOk{});
  EXPECT_TRUE(unbound.succeeded());

  ch->purge_queue("q", purged.completion());
  EXPECT_EQ(talk.sent<queue::Purge>(1).queue.text, "q");
  talk.send(1, queue::PurgeOk{7});
  EXPECT_EQ(purged.value(), 7u);

  ch->delete_queue("q", {.if_unused = true, .if_empty = true}, deleted.completion());
  const auto del = talk.sent<queue::Delete>(1);
  EXPECT_TRUE(del.if_unused && del.if_empty);
  talk.send(1, queue::DeleteOk{9});
  EXPECT_EQ(deleted.value(), 9u);

  ch->delete_exchange("shop", {.if_unused = true}, deleted_exchange.completion());
  EXPECT_TRUE(talk.sent<wire::exchange::Delete>(1).if_unused);
  talk.send(1, wire::exchange::DeleteOk{});
  EXPECT_TRUE(deleted_exchange.succeeded());

  ch->qos(25, true, qos.completion());
  const auto sent_qos = talk.sent<basic::Qos>(1);
  EXPECT_EQ(sent_qos.prefetch_count, 25);
  EXPECT_TRUE(sent_qos.global);
  talk.send(1, basic::QosOk{});
  EXPECT_TRUE(qos.succeeded());
}

TEST_F(ChannelTest, MatchesRepliesInOrderAndSwallowsALateOne) {
  Answer<std::uint32_t> first, second;
  ch->purge_queue("a", first.completion());
  talk.advance(600ms);
  ch->purge_queue("b", second.completion());
  talk.advance(400ms);
  ASSERT_TRUE(first.failed());
  EXPECT_EQ(first.error().kind(), ErrorKind::timeout);
  EXPECT_TRUE(second.pending());
  talk.send(1, queue::PurgeOk{1});
  EXPECT_TRUE(second.pending()) << "that was the answer to the first";
  talk.send(1, queue::PurgeOk{2});
  EXPECT_EQ(second.value(), 2u);
  EXPECT_EQ(first.calls(), 1);
}

// As RabbitMQ does, where the queue sends consume-ok and cancel-ok by itself.
TEST_F(ChannelTest, ConsumeOkAndCancelOkMayBeOvertaken) {
  Answer<ChannelMachine::Subscription> one, two;
  Answer<void> qos, cancelled;
  ch->consume("q", "one", {}, {}, one.completion());
  ch->consume("q", "two", {}, {}, two.completion());
  ch->qos(1, false, qos.completion());
  talk.send(1, basic::QosOk{});
  EXPECT_TRUE(qos.succeeded());
  EXPECT_TRUE(one.pending() && two.pending());
  talk.send(1, basic::ConsumeOk{"two"});
  talk.send(1, basic::ConsumeOk{"one"});
  EXPECT_EQ(one.value().consumer_tag, "one");
  EXPECT_EQ(two.value().consumer_tag, "two");
  Answer<std::uint32_t> purged;
  ch->cancel(one.value().consumer, cancelled.completion());
  ch->purge_queue("q", purged.completion());
  talk.send(1, queue::PurgeOk{3});
  EXPECT_TRUE(cancelled.pending());
  EXPECT_EQ(purged.value(), 3u);
  talk.send(1, basic::CancelOk{"one"});
  EXPECT_TRUE(cancelled.succeeded());
  talk.send(1, basic::CancelOk{"two"});
  EXPECT_TRUE(talk.machine.finished()) << "nobody asked for that";
}

TEST_F(ChannelTest, RefusesArgumentsThatCannotBeSent) {
  Answer<void> long_name, not_utf8, deep, long_key;
  Answer<QueueInfo> too_large;
  const std::string name_of_256(256, 'n');
  Table nested;
  for (int depth = 0; depth <= wire::kMaxTableDepth; ++depth) nested = Table{{"t", nested}};

  ch->delete_exchange(name_of_256, {}, long_name.completion());
  ch->delete_exchange("\xff", {}, not_utf8.completion());
  ch->bind_queue("q", "x", "k", nested, deep.completion());
  ch->bind_queue("q", "x", "k", {{name_of_256, 1}}, long_key.completion());
  ch->declare_queue("q", {}, {{"x", std::string(140'000, 'x')}}, too_large.completion());
  for (const auto* answer : {&long_name, &not_utf8, &deep, &long_key}) {
    ASSERT_TRUE(answer->failed());
    EXPECT_EQ(answer->error().kind(), ErrorKind::invalid_argument);
  }
  ASSERT_TRUE(too_large.failed());
  EXPECT_TRUE(talk.sent_nothing());

  Answer<void> still_open;
  ch->delete_exchange(std::string(255, 'n'), {}, still_open.completion());
  talk.sent<wire::exchange::Delete>(1);
  talk.send(1, wire::exchange::DeleteOk{});
  EXPECT_TRUE(still_open.succeeded());
}

TEST_F(ChannelTest, CloseByTheBrokerEndsEverythingPendingWithCodeAndText) {
  const auto subscription = consume();
  Next next;
  ch->next_delivery(subscription.consumer, std::nullopt, next.completion());
  std::deque<Answer<PublishResult>> publishes(100);
  for (auto& publish : publishes)
    ch->publish(test::make_publish("k", "body", publish.completion()));
  Answer<QueueInfo> declare;
  ch->declare_queue("missing", {.passive = true}, {}, declare.completion());
  Answer<std::optional<Delivery>> got;
  ch->get("q", {}, got.completion());
  talk.sent<wire::confirm::Select>(1);
  for (std::size_t i = 0; i < publishes.size(); ++i) talk.sent_publish(1);
  talk.sent<queue::Declare>(1);
  talk.sent<basic::Get>(1);

  const std::string text = "NOT_FOUND - no queue 'missing' in vhost '/'";
  talk.send(1, channel::Close{404, text, 50, 10});
  talk.sent<channel::CloseOk>(1);
  for (auto& publish : publishes) {
    ASSERT_TRUE(publish.succeeded());
    EXPECT_EQ(publish.value().status, PublishStatus::lost);
    EXPECT_EQ(publish.value().code, 404);
    EXPECT_EQ(publish.value().text, text);
  }
  const auto check = [&](const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::channel_closed);
    EXPECT_EQ(error.reply_code(), 404);
    EXPECT_EQ(error.reply_text(), text);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos);
  };
  ASSERT_TRUE(declare.failed() && got.failed() && next.failed());
  check(declare.error());
  check(got.error());
  check(next.error());

  // And so does everything that comes after; the connection goes on.
  Answer<void> qos;
  ch->qos(1, false, qos.completion());
  ASSERT_TRUE(qos.failed());
  check(qos.error());
  Answer<PublishResult> never_sent;
  ch->publish(test::make_publish("k", "body", never_sent.completion()));
  ASSERT_TRUE(never_sent.failed()) << "not lost: it was not sent";
  check(never_sent.error());
  ch->ack(1, {});
  Answer<void> closed;
  ch->close(closed.completion());
  EXPECT_TRUE(closed.succeeded());
  EXPECT_TRUE(talk.sent_nothing());
  talk.open_channel(2);
}

TEST_F(ChannelTest, EndOfTheConnectionEndsEverythingPending) {
  const std::string text = "CONNECTION_FORCED - broker forced connection closure";
  for (const bool closed_by_broker : {true, false}) {
    Conversation other;
    other.log_in();
    auto& one = other.open_channel(1);
    auto& two = other.open_channel(2);
    Answer<QueueInfo> declare;
    one.declare_queue("q", {}, {}, declare.completion());
    Answer<PublishResult> publish;
    two.publish(test::make_publish("k", "body", publish.completion()));
    other.sent<queue::Declare>(1);
    other.sent<wire::confirm::Select>(2);
    other.sent_publish(2);
    if (closed_by_broker) {
      other.send(0, wire::connection::Close{320, text, 0, 0});
      other.sent<wire::connection::CloseOk>(0);
    } else {
      other.machine.socket_lost("Connection reset by peer", other.now);
    }
    ASSERT_TRUE(declare.failed());
    EXPECT_EQ(declare.error().kind(),
              closed_by_broker ? ErrorKind::connection_closed : ErrorKind::network);
    ASSERT_TRUE(publish.succeeded());
    EXPECT_EQ(publish.value().status, PublishStatus::lost);
    if (closed_by_broker) {
      EXPECT_EQ(declare.error().reply_code(), 320);
      EXPECT_EQ(publish.value().code, 320);
      EXPECT_EQ(publish.value().text, text);
    } else {
      EXPECT_NE(publish.value().text.find("reset by peer"), std::string::npos);
    }
    EXPECT_TRUE(other.machine.finished());
  }
}

TEST_F(ChannelTest, CloseDiscardsWhatWasOnItsWay) {
  const auto subscription = consume();
  Next next;
  ch->next_delivery(subscription.consumer, std::nullopt, next.completion());
  Answer<void> closed;
  ch->close(closed.completion());
  EXPECT_EQ(talk.sent<channel::Close>(1).reply_code, 200);
  ASSERT_TRUE(next.succeeded());
  EXPECT_FALSE(next.value()) << "the program's own close is the stream's end, not an error";
  deliver(subscription.consumer_tag, 1, "too late");
  talk.send(1, basic::CancelOk{"x"});
  talk.send(1, channel::CloseOk{});
  EXPECT_TRUE(closed.succeeded());
  EXPECT_TRUE(talk.machine.is_open());
}

TEST_F(ChannelTest, CloseFromBothSidesAtOnceFreesTheNumber) {
  Answer<void> closed;
  ch->close(closed.completion());
  talk.sent<channel::Close>(1);
  talk.send(1, channel::Close{404, "NOT_FOUND", 0, 0});
  talk.sent<channel::CloseOk>(1);
  EXPECT_TRUE(closed.succeeded());
  talk.send(1, channel::CloseOk{});  // some brokers answer our close as well
  EXPECT_TRUE(talk.machine.is_open());
  talk.open_channel(2);
}

// --- Consuming -----------------------------------------------------------------------------------

TEST_F(ChannelTest, DeliversInOrderToWaitersAndToThoseWhoComeLater) {
  const auto subscription = consume();
  std::vector<std::unique_ptr<Next>> nexts;
  const auto ask = [&] {
    nexts.push_back(std::make_unique<Next>());
    ch->next_delivery(subscription.consumer, std::nullopt, nexts.back()->completion());
  };
  ask();
  ask();
  for (std::uint64_t tag = 1; tag <= 4; ++tag)
    deliver(subscription.consumer_tag, tag, std::string(tag * 3000, static_cast<char>('a' + tag)));
  ask();
  ask();
  ask();
  for (std::uint64_t tag = 1; tag <= 4; ++tag) {
    ASSERT_TRUE(nexts[tag - 1]->succeeded());
    const Delivery& delivery = *nexts[tag - 1]->value();
    EXPECT_EQ(delivery.delivery_tag, tag);
    EXPECT_EQ(delivery.body, std::string(tag * 3000, static_cast<char>('a' + tag)));
    EXPECT_EQ(delivery.exchange, "shop");
    EXPECT_EQ(delivery.routing_key, "key");
    EXPECT_EQ(delivery.redelivered, tag % 2 == 0);
    EXPECT_EQ(delivery.channel_incarnation, ch->incarnation().value);
  }
  EXPECT_TRUE(nexts[4]->pending());
}

TEST_F(ChannelTest, NextForEndsWithNothingWhenNothingComes) {
  const auto subscription = consume();
  Next idle, patient;
  ch->next_delivery(subscription.consumer, 500ms, idle.completion());
  ch->next_delivery(subscription.consumer, std::nullopt, patient.completion());
  talk.advance(500ms);
  ASSERT_TRUE(idle.succeeded());
  EXPECT_FALSE(idle.value());
  deliver(subscription.consumer_tag, 1, "x");
  ASSERT_TRUE(patient.succeeded());
  EXPECT_EQ(patient.value()->body, "x");
}

TEST_F(ChannelTest, CancelKeepsWhatHasArrived) {
  const auto subscription = consume();
  deliver(subscription.consumer_tag, 1, "one");
  Answer<void> cancelled;
  ch->cancel(subscription.consumer, cancelled.completion());
  EXPECT_EQ(talk.sent<basic::Cancel>(1).consumer_tag.text, subscription.consumer_tag);
  deliver(subscription.consumer_tag, 2, "two");  // sent before the broker saw the cancel
  talk.send(1, basic::CancelOk{subscription.consumer_tag});
  EXPECT_TRUE(cancelled.succeeded());
  for (const char* body : {"one", "two"}) {
    Next next;
    ch->next_delivery(subscription.consumer, std::nullopt, next.completion());
    ASSERT_TRUE(next.succeeded());
    EXPECT_EQ(next.value()->body, body);
  }
  Next end;
  ch->next_delivery(subscription.consumer, std::nullopt, end.completion());
  ASSERT_TRUE(end.succeeded());
  EXPECT_FALSE(end.value());
}

TEST_F(ChannelTest, CancelByTheBrokerIsAnErrorAfterWhatHasArrived) {
  const auto subscription = consume();
  deliver(subscription.consumer_tag, 1, "one");
  talk.send(1, basic::Cancel{subscription.consumer_tag, true});
  Next first, second;
  ch->next_delivery(subscription.consumer, std::nullopt, first.completion());
  ch->next_delivery(subscription.consumer, std::nullopt, second.completion());
  EXPECT_EQ(first.value()->body, "one");
  ASSERT_TRUE(second.failed());
  EXPECT_EQ(second.error().kind(), ErrorKind::consumer_cancelled);
  EXPECT_TRUE(talk.sent_nothing()) << "no-wait: no cancel-ok";

  const auto other = consume();
  talk.send(1, basic::Cancel{other.consumer_tag, false});
  EXPECT_EQ(talk.sent<basic::CancelOk>(1).consumer_tag.text, other.consumer_tag);
}

TEST_F(ChannelTest, AReleasedConsumerReturnsWhatWasNotTaken) {
  const auto subscription = consume();
  deliver(subscription.consumer_tag, 1, "one");
  deliver(subscription.consumer_tag, 2, "two");
  ch->release_consumer(subscription.consumer);
  for (std::uint64_t tag : {1, 2}) {
    const auto nack = talk.sent<basic::Nack>(1);
    EXPECT_EQ(nack.delivery_tag, tag);
    EXPECT_TRUE(nack.requeue);
    EXPECT_FALSE(nack.multiple);
  }
  talk.sent<basic::Cancel>(1);
  deliver(subscription.consumer_tag, 3, "three");
  EXPECT_EQ(talk.sent<basic::Nack>(1).delivery_tag, 3u);
  talk.send(1, basic::CancelOk{subscription.consumer_tag});
  EXPECT_TRUE(talk.sent_nothing());
  Next gone;
  ch->next_delivery(subscription.consumer, std::nullopt, gone.completion());
  ASSERT_TRUE(gone.failed());
  EXPECT_EQ(gone.error().kind(), ErrorKind::closed);
  consume({}, subscription.consumer_tag);  // the tag is free again
}

TEST_F(ChannelTest, AReleasedConsumerWithoutAcksReturnsNothing) {
  const auto subscription = consume({.no_ack = true});
  deliver(subscription.consumer_tag, 1, "one");
  ch->release_consumer(subscription.consumer);
  talk.sent<basic::Cancel>(1);
  deliver(subscription.consumer_tag, 2, "two");
  EXPECT_TRUE(talk.sent_nothing());
}

TEST_F(ChannelTest, ConsumeOkAfterTheTimeLimitIsUndone) {
  Answer<ChannelMachine::Subscription> answer;
  ch->consume("q", "tag", {}, {}, answer.completion());
  talk.sent<basic::Consume>(1);
  talk.advance(1s);
  ASSERT_TRUE(answer.failed());
  EXPECT_EQ(answer.error().kind(), ErrorKind::timeout);
  talk.send(1, basic::ConsumeOk{"tag"});
  EXPECT_EQ(talk.sent<basic::Cancel>(1).consumer_tag.text, "tag");
  deliver("tag", 1, "x");
  EXPECT_EQ(talk.sent<basic::Nack>(1).delivery_tag, 1u);
  talk.send(1, basic::CancelOk{"tag"});
  consume({}, "tag");
}

TEST_F(ChannelTest, ATagInUseIsRefusedHereAndChosenTagsAvoidIt) {
  consume({}, "consumer-2");
  Answer<ChannelMachine::Subscription> again;
  ch->consume("q", "consumer-2", {}, {}, again.completion());
  ASSERT_TRUE(again.failed());
  EXPECT_EQ(again.error().kind(), ErrorKind::invalid_argument);
  EXPECT_TRUE(talk.sent_nothing());
  EXPECT_EQ(consume().consumer_tag, "consumer-3");
}

TEST_F(ChannelTest, GetsOneOrNothing) {
  Answer<std::optional<Delivery>> got, empty;
  ch->get("q", {.no_ack = true}, got.completion());
  ch->get("q", {}, empty.completion());
  EXPECT_TRUE(talk.sent<basic::Get>(1).no_ack);
  EXPECT_FALSE(talk.sent<basic::Get>(1).no_ack);
  wire::Properties properties;
  properties.headers = Table{{"a", 1}};
  properties.message_id = "m1";
  talk.send_content(1, basic::GetOk{5, true, "shop", "key", 8}, "body", properties);
  talk.send(1, basic::GetEmpty{});
  ASSERT_TRUE(got.succeeded() && empty.succeeded());
  EXPECT_FALSE(empty.value());
  const Delivery& delivery = *got.value();
  EXPECT_EQ(delivery.body, "body");
  EXPECT_EQ(delivery.delivery_tag, 5u);
  EXPECT_EQ(delivery.message_count, 8u);
  EXPECT_TRUE(delivery.redelivered);
  EXPECT_EQ(delivery.properties().message_id, "m1");
  EXPECT_EQ(delivery.properties().headers->find("a")->as_integer(), 1);
}

TEST_F(ChannelTest, GetOkAfterTheTimeLimitGoesBackToTheQueue) {
  Answer<std::optional<Delivery>> got;
  ch->get("q", {}, got.completion());
  talk.sent<basic::Get>(1);
  talk.advance(1s);
  ASSERT_TRUE(got.failed());
  talk.send_content(1, basic::GetOk{1, false, "", "q", 0}, "late");
  const auto nack = talk.sent<basic::Nack>(1);
  EXPECT_EQ(nack.delivery_tag, 1u);
  EXPECT_TRUE(nack.requeue);
}

TEST_F(ChannelTest, SettlesAsAsked) {
  ch->ack(1, {});
  ch->ack(2, {.multiple = true});
  ch->nack(3, {});
  ch->nack(4, {.multiple = true, .requeue = false});
  ch->reject(5, true);
  ch->reject(6, false);
  EXPECT_FALSE(talk.sent<basic::Ack>(1).multiple);
  EXPECT_TRUE(talk.sent<basic::Ack>(1).multiple);
  const auto nack = talk.sent<basic::Nack>(1);
  EXPECT_TRUE(nack.requeue && !nack.multiple && nack.delivery_tag == 3);
  const auto nack_all = talk.sent<basic::Nack>(1);
  EXPECT_TRUE(!nack_all.requeue && nack_all.multiple && nack_all.delivery_tag == 4);
  EXPECT_TRUE(talk.sent<basic::Reject>(1).requeue);
  const auto reject = talk.sent<basic::Reject>(1);
  EXPECT_TRUE(!reject.requeue && reject.delivery_tag == 6);
}

TEST(DeliveryLimits, StopReadingUntilTheProgramTakesSome) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_buffered_bytes = 10'000;
  Conversation talk(options);
  talk.log_in();
  auto& ch = talk.open_channel();
  Answer<ChannelMachine::Subscription> answer;
  ch.consume("q", "t", {}, {}, answer.completion());
  talk.sent<basic::Consume>(1);
  talk.send(1, basic::ConsumeOk{"t"});
  const auto deliver = [&](std::uint64_t tag) {
    talk.send_content(1, basic::Deliver{"t", tag, false, "", "q"}, std::string(4000, 'x'));
  };
  deliver(1);
  deliver(2);
  EXPECT_TRUE(talk.machine.wants_read());
  deliver(3);
  EXPECT_FALSE(talk.machine.wants_read());

  // Whoever waits for an answer cannot take deliveries meanwhile: reading goes on, within bounds.
  Answer<void> qos;
  ch.qos(1, false, qos.completion());
  EXPECT_TRUE(talk.machine.wants_read());
  for (std::uint64_t tag = 4; tag <= 10; ++tag) deliver(tag);
  EXPECT_FALSE(talk.machine.wants_read());

  // Silence while nobody listens is not the broker's.
  talk.advance(60s);
  talk.advance(60s);
  talk.advance(60s);
  EXPECT_TRUE(talk.machine.is_open());

  for (int taken = 0; taken < 8; ++taken) {
    Next next;
    ch.next_delivery(answer.value().consumer, std::nullopt, next.completion());
    ASSERT_TRUE(next.succeeded());
  }
  EXPECT_TRUE(talk.machine.wants_read());
}

TEST(DeliveryLimits, ATooLargeMessageClosesOnlyItsChannel) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_message_bytes = 1000;
  Conversation talk(options);
  talk.log_in();
  auto& ch = talk.open_channel();
  Answer<std::optional<Delivery>> got;
  ch.get("q", {}, got.completion());
  talk.sent<basic::Get>(1);
  talk.send_content(1, basic::GetOk{1, false, "", "q", 0}, std::string(1001, 'x'));
  EXPECT_EQ(talk.sent<channel::Close>(1).reply_code, 311);
  ASSERT_TRUE(got.failed());
  EXPECT_EQ(got.error().kind(), ErrorKind::channel_closed);
  EXPECT_EQ(got.error().reply_code(), 311);
  talk.send(1, channel::CloseOk{});
  talk.open_channel(2);
}

// A header that announces a lot costs nothing: the client grows with what comes.
TEST(DeliveryLimits, AnAnnouncedSizeIsNotBelieved) {
  Conversation talk;
  talk.log_in();
  auto& ch = talk.open_channel();
  Answer<std::optional<Delivery>> got;
  ch.get("q", {}, got.completion());
  std::string bytes;
  wire::append_method(bytes, ChannelNumber(1), basic::GetOk{1, false, "", "q", 0});
  wire::append_content_header(bytes, ChannelNumber(1), 128u << 20, {"\0\0", 2});
  talk.receive(bytes);
  EXPECT_TRUE(talk.machine.is_open());
  EXPECT_TRUE(got.pending());
  talk.machine.socket_lost("reset", talk.now);
  EXPECT_TRUE(got.failed());
}

}  // namespace
}  // namespace stoat::client
