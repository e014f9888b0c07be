#include "tests/broker/protocol/protocol_test.hpp"

#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/support/test_broker.hpp"

namespace stoat::test {
namespace {

// Starts the shared broker before the first test and stops it after the last.
class SharedBroker : public testing::Environment {
 public:
  void SetUp() override {
    if (!external_port()) broker_ = std::make_unique<TestBroker>();
  }
  void TearDown() override { broker_.reset(); }
  std::uint16_t port() const { return broker_ ? broker_->port() : *external_port(); }

 private:
  std::unique_ptr<TestBroker> broker_;
};

SharedBroker* const shared_broker = [] {
  auto broker = std::make_unique<SharedBroker>();
  return static_cast<SharedBroker*>(testing::AddGlobalTestEnvironment(broker.release()));
}();

}  // namespace

bool against_another_broker() {
  return external_port().has_value();
}

std::uint16_t ProtocolTest::port() {
  return shared_broker->port();
}

std::string ProtocolTest::name(std::string_view stem) const {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->name()) + "." + std::string(stem);
  // A parameterised test's name has a slash, and names are cut to leave room in a short string.
  if (name.size() > 120) name.erase(0, name.size() - 120);
  return name + "." + std::to_string(getpid());
}

std::string ProtocolTest::queue(std::string_view stem) {
  return queues_.emplace_back(name(stem));
}

std::string ProtocolTest::exchange(std::string_view stem) {
  return exchanges_.emplace_back(name(stem));
}

bool ProtocolTest::queue_exists(WireClient& client, std::string_view queue) {
  queue::Declare passive;
  passive.queue = queue;
  passive.passive = true;
  client.send(1, passive);
  const Frame frame = client.take(1, "queue.declare-ok or channel.close");
  if (peek_method_id(*frame.payload) == queue::DeclareOk::kId) return true;
  const auto close = decode_method<channel::Close>(*frame.payload);
  if (!close || close->reply_code != 404) throw Unexpected("expected 404, got " + describe(frame));
  client.send(1, channel::CloseOk{});
  client.open_channel(1);
  return false;
}

bool ProtocolTest::eventually(const std::function<bool()>& condition) {
  const auto deadline = TestClock::now() + kReplyLimit;
  while (!condition()) {
    if (TestClock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

void ProtocolTest::TearDown() {
  WireClient client = connect();
  for (const std::string& queue : queues_) client.delete_queue(1, queue);
  for (const std::string& exchange : exchanges_) client.delete_exchange(1, exchange);
  client.close();
}

}  // namespace stoat::test
