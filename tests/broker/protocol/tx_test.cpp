// Transactions: nothing before commit, all at commit, nothing after rollback.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

using Bodies = std::vector<std::string>;

class Transactions : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    other_.emplace(connect());
    q_ = queue();
    client_->declare_queue(1, q_, {}, true);
    client_->open_channel(2);
    client_->call<tx::SelectOk>(2, tx::Select{});
  }
  void commit() { client_->call<tx::CommitOk>(2, tx::Commit{}); }
  void rollback() { client_->call<tx::RollbackOk>(2, tx::Rollback{}); }
  Bodies left() { return bodies(other_->drain(1, q_)); }

  std::optional<WireClient> client_;
  std::optional<WireClient> other_;
  std::string q_;
};

TEST_F(Transactions, PublishesAppearAtCommitInOrder) {
  for (const char* body : {"1", "2", "3"}) client_->publish(2, "", q_, body);
  other_->consume(1, q_, "tag", true);
  other_->nothing_within(kQuiet);
  commit();
  for (const char* body : {"1", "2", "3"}) EXPECT_EQ(other_->expect_delivery(1).body, body);
  client_->publish(2, "", q_, "4");  // the next transaction has begun
  commit();
  EXPECT_EQ(other_->expect_delivery(1).body, "4");
}

TEST_F(Transactions, CommitOkMeansVisibleToAll) {
  for (int i = 0; i < 50; ++i) {
    client_->publish(2, "", q_, "m");
    commit();
    ASSERT_EQ(other_->ready_count(1, q_), static_cast<std::uint32_t>(i + 1));
  }
}

TEST_F(Transactions, WhatAFanOutWouldWriteCounts) {
  STOAT_OWN_CHOICE("others have no limit");
  constexpr int kQueues = 400;
  const std::string x = exchange();
  client_->declare_exchange(1, x, "fanout");
  for (int i = 0; i < kQueues; ++i) {
    const std::string q = queue("fan." + std::to_string(i));
    client_->declare_queue(1, q);
    client_->bind(1, q, x, "");
  }
  // 2 MB of these are more than 800 MB in the queues.
  const std::string body(4000, 'b');
  for (int i = 0; i < 500; ++i) client_->publish(2, x, "", body);
  const std::string text = client_->expect_channel_close(2, 406);
  EXPECT_NE(text.find("transaction is larger than"), std::string::npos) << text;
  EXPECT_EQ(client_->ready_count(1, queue("fan.0")), 0u);
}

TEST_F(Transactions, RollbackForgetsPublishes) {
  client_->publish(2, "", q_, "never");
  rollback();
  client_->publish(2, "", q_, "kept");
  commit();
  EXPECT_EQ(left(), (Bodies{"kept"}));
}

TEST_F(Transactions, ClosingTheChannelForgetsPublishesAndAcks) {
  client_->publish(1, "", q_, "taken");
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 1; }));
  const auto message = client_->get(2, q_, false);
  client_->ack(2, message->method.delivery_tag);
  client_->publish(2, "", q_, "never");
  client_->close_channel(2);
  const auto messages = other_->drain(1, q_);
  ASSERT_EQ(bodies(messages), (Bodies{"taken"}));
  EXPECT_TRUE(messages[0].method.redelivered);
}

TEST_F(Transactions, CommitCoversAllItsQueues) {
  const std::string x = exchange(), second = queue("second");
  client_->declare_exchange(1, x, "fanout");
  client_->declare_queue(1, second);
  client_->bind(1, q_, x, "");
  client_->bind(1, second, x, "");
  for (const char* body : {"1", "2"}) client_->publish(2, x, "", body);
  client_->publish(2, "", q_, "3");
  EXPECT_EQ(other_->ready_count(1, q_), 0u);
  EXPECT_EQ(other_->ready_count(1, second), 0u);
  commit();
  EXPECT_EQ(left(), (Bodies{"1", "2", "3"}));
  EXPECT_EQ(bodies(other_->drain(1, second)), (Bodies{"1", "2"}));
}

TEST_F(Transactions, AcksTakeEffectAtCommitAndMoveMessagesAtomically) {
  const std::string target = queue("target");
  client_->declare_queue(1, target, {}, true);
  client_->publish(1, "", q_, "moved");
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 1; }));
  const auto message = client_->get(2, q_, false);
  client_->publish(2, "", target, message->body);
  client_->ack(2, message->method.delivery_tag);
  EXPECT_EQ(other_->ready_count(1, target), 0u);
  commit();
  EXPECT_EQ(bodies(other_->drain(1, target)), (Bodies{"moved"}));
  client_->close_channel(2);
  EXPECT_TRUE(left().empty()) << "the ack was part of the transaction";
}

TEST_F(Transactions, RollbackLeavesMessagesUnacknowledgedAndAckableAgain) {
  client_->publish(1, "", q_, "m");
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 1; }));
  const std::uint64_t tag = client_->get(2, q_, false)->method.delivery_tag;
  client_->ack(2, tag);
  rollback();
  EXPECT_EQ(other_->ready_count(1, q_), 0u) << "rollback does not redeliver";
  client_->ack(2, tag);
  commit();
  client_->close_channel(2);
  EXPECT_TRUE(left().empty());
}

TEST_F(Transactions, RejectsWithRequeueTakeEffectAtCommit) {
  for (const char* body : {"1", "2", "3"}) client_->publish(1, "", q_, body);
  ASSERT_TRUE(eventually([&] { return client_->ready_count(1, q_) == 3; }));
  for (int i = 0; i < 3; ++i) client_->get(2, q_, false);
  client_->reject(2, 1, true);
  client_->nack(2, 2, false, false);
  client_->ack(2, 3);
  EXPECT_EQ(other_->ready_count(1, q_), 0u);
  commit();
  EXPECT_EQ(left(), (Bodies{"1"}));
}

TEST_F(Transactions, UnknownTagsAreRefusedAtOnce) {
  client_->ack(2, 77);
  client_->expect_channel_close(2, 406);
}

TEST_F(Transactions, MandatoryReturnsComeBeforeCommitOk) {
  client_->publish(2, "", name("nobody"), "returned", {}, true);
  client_->publish(2, "", q_, "routed", {}, true);
  client_->send(2, tx::Commit{});
  EXPECT_EQ(client_->expect_content<basic::Return>(2).body, "returned");
  client_->expect<tx::CommitOk>(2);
  EXPECT_EQ(left(), (Bodies{"routed"}));
}

TEST_F(Transactions, EmptyCommitsAndRepeatedSelectsAreFine) {
  commit();
  rollback();
  client_->call<tx::SelectOk>(2, tx::Select{});
  commit();
}

TEST_F(Transactions, CommitAndRollbackNeedASelect) {
  client_->send(1, tx::Commit{});
  client_->expect_channel_close(1, 406);
  client_->open_channel(1);
  client_->send(1, tx::Rollback{});
  client_->expect_channel_close(1, 406);
}

TEST_F(Transactions, ABigOneCommitsWhole) {
  const std::string body(1000, 'b');
  for (int i = 0; i < 3000; ++i) client_->publish(2, "", q_, body);
  EXPECT_EQ(other_->ready_count(1, q_), 0u);
  commit();
  EXPECT_EQ(other_->ready_count(1, q_), 3000u);
}

}  // namespace
}  // namespace stoat::test
