#include "client/publisher.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "tests/client/conversation.hpp"

namespace stoat::client {
namespace {

using namespace std::chrono_literals;
using test::Answer;
using test::Conversation;
using test::make_publish;
namespace basic = wire::basic;

class PublishTest : public testing::Test {
 protected:
  void open(ConnectionOptions options = Conversation::quick_options(),
            wire::connection::Tune tune = {2047, 131072, 0}) {
    talk.emplace(options);
    talk->log_in(tune);
    ch = &talk->open_channel();
  }
  Answer<PublishResult>& publish(std::string key, std::string body = "body",
                                 bool mandatory = false) {
    ch->publish(make_publish(std::move(key), std::move(body), answers.emplace_back().completion(),
                             mandatory));
    return answers.back();
  }
  void expect_status(std::size_t index, PublishStatus status) {
    ASSERT_TRUE(answers.at(index).succeeded()) << index;
    EXPECT_EQ(answers[index].value().status, status) << index;
  }
  void return_message(std::string_view key, std::string_view body = "body") {
    talk->send_content(1, basic::Return{312, "NO_ROUTE", "shop", key}, body);
  }

  std::optional<Conversation> talk;
  ChannelMachine* ch = nullptr;
  std::deque<Answer<PublishResult>> answers;
};

TEST_F(PublishTest, SelectsConfirmsOnceAndSendsAtOnce) {
  open();
  publish("a", "first");
  publish("b", "", true);
  talk->sent<wire::confirm::Select>(1);
  const auto first = talk->sent_publish(1);
  EXPECT_EQ(first.method.exchange.text, "shop");
  EXPECT_EQ(first.method.routing_key.text, "a");
  EXPECT_FALSE(first.method.mandatory || first.method.immediate);
  EXPECT_EQ(first.body, "first");
  const auto second = talk->sent_publish(1);
  EXPECT_TRUE(second.method.mandatory);
  EXPECT_TRUE(second.body_frame_bytes.empty()) << "an empty body has no body frame";
  talk->send(1, wire::confirm::SelectOk{});
  talk->send(1, basic::Ack{2, true});
  expect_status(0, PublishStatus::acked);
  expect_status(1, PublishStatus::acked);
}

TEST_F(PublishTest, CutsBodiesAtFrameMax) {
  open(Conversation::quick_options(), {2047, 4096, 0});
  for (const std::size_t size : {4087, 4088, 4089, 8176, 8177, 100'000}) {
    SCOPED_TRACE(size);
    publish("k", std::string(size, 'x'));
    if (answers.size() == 1) talk->sent<wire::confirm::Select>(1);
    const auto sent = talk->sent_publish(1);
    EXPECT_EQ(sent.body, std::string(size, 'x'));
    EXPECT_EQ(sent.body_frame_bytes.size(), (size + 4087) / 4088);
    for (const std::size_t bytes : sent.body_frame_bytes) EXPECT_LE(bytes, 4096u);
  }
}

TEST_F(PublishTest, EachPublishGetsItsOwnAnswer) {
  open();
  for (int i = 0; i < 5; ++i) publish("k");
  talk->send(1, wire::confirm::SelectOk{});
  talk->send(1, basic::Ack{3, true});
  talk->send(1, basic::Nack{4, false, false});
  talk->send(1, basic::Ack{5, false});
  for (std::size_t i : {0, 1, 2, 4}) expect_status(i, PublishStatus::acked);
  expect_status(3, PublishStatus::nacked);
}

TEST_F(PublishTest, ReturnsComeBeforeTheirAckWhateverElseIsUnderWay) {
  open();
  for (const char* key : {"routed", "nowhere", "routed", "nowhere", "routed"})
    publish(key, std::string("to ") + key, true);
  talk->send(1, wire::confirm::SelectOk{});
  return_message("nowhere", "to nowhere");
  talk->send(1, basic::Ack{1, false});
  return_message("nowhere", "to nowhere");
  EXPECT_TRUE(answers[1].pending() && answers[3].pending());
  talk->send(1, basic::Ack{5, true});
  for (std::size_t i : {0, 2, 4}) expect_status(i, PublishStatus::acked);
  for (std::size_t i : {1, 3}) {
    expect_status(i, PublishStatus::returned);
    EXPECT_EQ(answers[i].value().code, 312);
    EXPECT_EQ(answers[i].value().text, "NO_ROUTE");
  }
}

TEST_F(PublishTest, WaitsForRoomInTheWindowAndKeepsItsOrder) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_unconfirmed = 2;
  open(options);
  for (const char* body : {"1", "2", "3", "4"}) publish("k", body);
  talk->sent<wire::confirm::Select>(1);
  EXPECT_EQ(talk->sent_publish(1).body, "1");
  EXPECT_EQ(talk->sent_publish(1).body, "2");
  EXPECT_TRUE(talk->sent_nothing());
  talk->send(1, wire::confirm::SelectOk{});
  talk->send(1, basic::Ack{2, false});
  EXPECT_EQ(talk->sent_publish(1).body, "3");
  EXPECT_TRUE(talk->sent_nothing());
  talk->send(1, basic::Ack{3, true});
  EXPECT_EQ(talk->sent_publish(1).body, "4");
  talk->send(1, basic::Ack{4, false});
  for (std::size_t i = 0; i < 4; ++i) expect_status(i, PublishStatus::acked);
}

TEST_F(PublishTest, WaitsForTheSocketAndAllChannelsGetTheirTurn) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_unsent_bytes = 1000;
  open(options);
  auto& other = talk->open_channel(2);
  talk->socket_takes_output = false;
  const auto unconfirmed = [&](ChannelMachine& on) {
    auto message = make_publish("k", std::string(2000, 'x'), answers.emplace_back().completion());
    message.confirm = false;
    on.publish(std::move(message));
  };
  unconfirmed(*ch);  // fills the room
  for (int i = 0; i < 2; ++i) unconfirmed(*ch);
  for (int i = 0; i < 2; ++i) unconfirmed(other);
  EXPECT_TRUE(answers[0].succeeded());
  for (std::size_t i = 1; i < 5; ++i) EXPECT_TRUE(answers[i].pending());
  talk->socket_takes_output = true;
  // Each write makes room for one, and the channels take turns.
  for (const int channel : {1, 1, 2, 1, 2}) {
    EXPECT_EQ(talk->next_channel(), channel);
    EXPECT_EQ(talk->sent_publish(talk->next_channel()).body.size(), 2000u);
  }
  EXPECT_TRUE(talk->sent_nothing());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(answers[i].succeeded());
}

TEST_F(PublishTest, WaitsWhileTheBrokerStopsTheFlow) {
  open();
  talk->send(1, wire::channel::Flow{false});
  EXPECT_FALSE(talk->sent<wire::channel::FlowOk>(1).active);
  publish("k");
  EXPECT_TRUE(talk->sent_nothing());
  talk->send(1, wire::channel::Flow{true});
  EXPECT_TRUE(talk->sent<wire::channel::FlowOk>(1).active);
  talk->sent<wire::confirm::Select>(1);
  talk->sent_publish(1);
}

TEST_F(PublishTest, TimeLimitTellsNotSentFromLost) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_unconfirmed = 1;
  open(options);
  publish("k", "sent");
  publish("k", "waits");
  talk->sent<wire::confirm::Select>(1);
  talk->send(1, wire::confirm::SelectOk{});
  talk->sent_publish(1);
  talk->advance(3s);
  expect_status(0, PublishStatus::lost);
  EXPECT_EQ(answers[0].value().code, 0);
  ASSERT_TRUE(answers[1].failed()) << "it was never sent";
  EXPECT_EQ(answers[1].error().kind(), ErrorKind::timeout);
  // The late ack is that of the first; it makes room and reaches nobody.
  talk->send(1, basic::Ack{1, false});
  EXPECT_EQ(answers[0].calls(), 1);
  publish("k", "next");
  EXPECT_EQ(talk->sent_publish(1).body, "next");
  talk->send(1, basic::Ack{2, false});
  expect_status(2, PublishStatus::acked);
}

TEST_F(PublishTest, CloseFailsWhatWaitsAndLosesWhatWasSent) {
  ConnectionOptions options = Conversation::quick_options();
  options.max_unconfirmed = 2;
  open(options);
  for (int i = 0; i < 4; ++i) publish("k");
  talk->send(1, wire::channel::Close{406, "PRECONDITION_FAILED - no", 60, 40});
  for (std::size_t i : {0, 1}) {
    expect_status(i, PublishStatus::lost);
    EXPECT_EQ(answers[i].value().code, 406);
  }
  for (std::size_t i : {2, 3}) {
    ASSERT_TRUE(answers[i].failed());
    EXPECT_EQ(answers[i].error().reply_code(), 406);
    EXPECT_EQ(answers[i].error().reply_text(), "PRECONDITION_FAILED - no");
  }
}

TEST_F(PublishTest, UnconfirmedOnesAreDoneWhenSentAndShareTheTags) {
  open();
  auto before = make_publish("k", "before", answers.emplace_back().completion());
  before.confirm = false;
  ch->publish(std::move(before));
  EXPECT_TRUE(answers[0].succeeded());
  EXPECT_EQ(talk->sent_publish(1).body, "before");  // no confirm.select yet: it has no tag
  publish("k", "tag 1");
  auto between = make_publish("k", "tag 2", answers.emplace_back().completion());
  between.confirm = false;
  ch->publish(std::move(between));
  publish("k", "tag 3");
  EXPECT_TRUE(answers[2].succeeded());
  talk->send(1, wire::confirm::SelectOk{});
  talk->send(1, basic::Nack{3, false, false});
  EXPECT_TRUE(answers[1].pending());
  talk->send(1, basic::Ack{2, true});
  expect_status(1, PublishStatus::acked);
  expect_status(3, PublishStatus::nacked);
}

TEST_F(PublishTest, RefusesWhatDoesNotFitAndGoesOn) {
  open(Conversation::quick_options(), {2047, 4096, 0});
  auto& long_key = publish(std::string(256, 'k'));
  ASSERT_TRUE(long_key.failed());
  EXPECT_EQ(long_key.error().kind(), ErrorKind::invalid_argument);
  auto big = make_publish("k", "body", answers.emplace_back().completion());
  wire::Properties properties;
  properties.headers = Table{{"h", std::string(5000, 'x')}};
  big.properties = properties.encode();
  ch->publish(std::move(big));
  ASSERT_TRUE(answers.back().failed());
  EXPECT_EQ(answers.back().error().kind(), ErrorKind::invalid_argument);
  // Tags count only what was sent.
  publish("k");
  talk->sent<wire::confirm::Select>(1);
  talk->sent_publish(1);
  talk->send(1, wire::confirm::SelectOk{});
  talk->send(1, basic::Ack{1, false});
  expect_status(2, PublishStatus::acked);
}

// The whole of a conversation with the connection lost after each of its steps: whatever was
// begun has ended exactly once, and none is taken for a success that it was not.
TEST(ConnectionLostAnywhere, LeavesNothingPending) {
  constexpr int kSteps = 9;
  for (int lost_after = 0; lost_after <= kSteps; ++lost_after) {
    SCOPED_TRACE(lost_after);
    Conversation talk;
    talk.log_in();
    auto& ch = talk.open_channel();
    Answer<QueueInfo> declare;
    Answer<PublishResult> publish, returned;
    Answer<ChannelMachine::Subscription> consume;
    Answer<std::optional<Delivery>> next, got;
    Answer<void> cancel;
    ch.declare_queue("q", {}, {}, declare.completion());
    ch.publish(make_publish("k", "body", publish.completion()));
    ch.publish(make_publish("no", "body", returned.completion(), true));
    ch.consume("q", "t", {}, {}, consume.completion());
    ch.next_delivery(ConsumerId(1), std::nullopt, next.completion());
    ch.get("q", {}, got.completion());
    ch.cancel(ConsumerId(1), cancel.completion());
    const std::function<void()> steps[kSteps] = {
        [&] {
          talk.send(1, wire::queue::DeclareOk{"q", 0, 0});
        },
        [&] { talk.send(1, wire::confirm::SelectOk{}); },
        [&] {
          talk.send_content(1, basic::Return{312, "NO_ROUTE", "shop", "no"}, "body");
        },
        [&] {
          talk.send(1, basic::Ack{2, true});
        },
        [&] { talk.send(1, basic::ConsumeOk{"t"}); },
        [&] {
          talk.send_content(1, basic::Deliver{"t", 1, false, "", "q"}, "body");
        },
        [&] {
          talk.send_content(1, basic::GetOk{2, false, "", "q", 0}, "body");
        },
        [&] { talk.send(1, basic::CancelOk{"t"}); },
        [&] {
          talk.send(1, wire::channel::Close{320, "CONNECTION_FORCED", 0, 0});
        },
    };
    for (int step = 0; step < lost_after; ++step) steps[step]();
    talk.machine.socket_lost("reset", talk.now);
    EXPECT_EQ(declare.succeeded(), lost_after >= 1);
    EXPECT_EQ(consume.succeeded(), lost_after >= 5);
    EXPECT_EQ(next.succeeded(), lost_after >= 6);
    EXPECT_EQ(got.succeeded(), lost_after >= 7);
    EXPECT_EQ(cancel.succeeded(), lost_after >= 8);
    for (const int calls : {declare.calls(), publish.calls(), returned.calls(), consume.calls(),
                            next.calls(), got.calls(), cancel.calls()})
      EXPECT_EQ(calls, 1);
    EXPECT_EQ(publish.value().status, lost_after >= 4 ? PublishStatus::acked : PublishStatus::lost);
    EXPECT_EQ(returned.value().status,
              lost_after >= 3 ? PublishStatus::returned : PublishStatus::lost);
  }
}

}  // namespace
}  // namespace stoat::client
