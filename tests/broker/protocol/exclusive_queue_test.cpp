// Another connection's exclusive queue: 405 on the channel for whatever is tried on it.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class ExclusiveQueue : public ProtocolTest {
 protected:
  void SetUp() override {
    owner_.emplace(connect());
    other_.emplace(connect());
    q_ = name("q");  // goes with its owner
    queue::Declare declare;
    declare.queue = q_;
    declare.exclusive = true;
    declare.durable = true;
    owner_->call<queue::DeclareOk>(1, declare);
  }
  template <class M>
  void expect_locked(const M& method) {
    other_->send(1, method);
    EXPECT_TRUE(other_->expect_channel_close(1, 405).starts_with(
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + q_ +
        "' in vhost '/'"))
        << method_name(M::kId);
    other_->open_channel(1);
  }

  std::optional<WireClient> owner_;
  std::optional<WireClient> other_;
  std::string q_;
};

TEST_F(ExclusiveQueue, DeclareIsLockedWhateverTheArgumentsAre) {
  // Exclusivity comes before equivalence: 405 and not 406.
  queue::Declare declare;
  declare.queue = q_;
  expect_locked(declare);
  declare.durable = true;
  declare.exclusive = true;
  expect_locked(declare);
  declare.arguments = {{"x-max-length", 5}};
  expect_locked(declare);
  declare.auto_delete = true;
  expect_locked(declare);
}

TEST_F(ExclusiveQueue, PassiveDeclareIsLockedEvenWithNoWait) {
  queue::Declare declare;
  declare.queue = q_;
  declare.passive = true;
  expect_locked(declare);
  declare.no_wait = true;
  expect_locked(declare);
}

TEST_F(ExclusiveQueue, BindAndUnbindAreLocked) {
  expect_locked(queue::Bind{0, q_, "amq.direct", "k", false, {}});
  owner_->bind(1, q_, "amq.direct", q_);
  expect_locked(queue::Unbind{0, q_, "amq.direct", q_, {}});
  // Others answer unbind-ok for a binding that is not there, whosever the queue is.
  if (!against_another_broker()) expect_locked(queue::Unbind{0, q_, "amq.direct", "k", {}});
}

TEST_F(ExclusiveQueue, PurgeAndDeleteAreLocked) {
  expect_locked(queue::Purge{0, q_, false});
  expect_locked(queue::Delete{0, q_, false, false, false});
}

TEST_F(ExclusiveQueue, ConsumeAndGetAreLocked) {
  expect_locked(basic::Consume{0, q_, "tag", false, false, false, false, {}});
  expect_locked(basic::Get{0, q_, true});
}

TEST_F(ExclusiveQueue, PublishingToItIsOpenToAll) {
  other_->confirm_select(1);
  other_->publish(1, "", q_, "from outside", {}, true);
  EXPECT_FALSE(other_->expect_confirm(1).nack);
  EXPECT_EQ(bodies(owner_->drain(1, q_)), std::vector{"from outside"s});
}

TEST_F(ExclusiveQueue, ItsOwnerMayDeclareItAgain) {
  queue::Declare declare;
  declare.queue = q_;
  declare.exclusive = true;
  declare.durable = true;
  owner_->call<queue::DeclareOk>(1, declare);
  declare.passive = true;
  owner_->call<queue::DeclareOk>(1, declare);
}

}  // namespace
}  // namespace stoat::test
