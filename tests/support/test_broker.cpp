#include "tests/support/test_broker.hpp"

#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "broker/log.hpp"

namespace stoat::test {
namespace {

// Tests provoke what a broker logs; only its own troubles are worth reading there.
constexpr const char* kLogLevel = "error";

// One, or as many as STOAT_TEST_WORKERS says: with one, queues and connections share a thread and
// call each other plainly; with two, they meet through mailboxes.
std::uint32_t workers() {
  const char* text = std::getenv("STOAT_TEST_WORKERS");
  return text == nullptr ? 1 : static_cast<std::uint32_t>(std::stoul(text));
}

}  // namespace

std::optional<std::uint16_t> external_port() {
  const char* text = std::getenv("STOAT_TEST_PORT");
  if (text == nullptr || *text == '\0') return std::nullopt;
  return static_cast<std::uint16_t>(std::stoul(text));
}

TestBroker::TestBroker(std::function<void(broker::Config&)> adjust) : adjust_(std::move(adjust)) {
  static std::once_flag once;
  std::call_once(once, [] { broker::log::start(kLogLevel); });
  start();
}

TestBroker::~TestBroker() = default;

void TestBroker::restart() {
  server_->stop();
  server_.reset();  // the folder's lock goes with it
  start();
}

void TestBroker::start() {
  broker::Config config;
  config.amqp_port = 0;
  config.admin_port = 0;
  config.data_dir = folder_.path() / "data";
  config.workers = workers();
  config.log_level = kLogLevel;
  config.disk_alarm_free_mb = 0;  // the machine's disk is not what is tested
  if (adjust_) adjust_(config);
  server_ = std::make_unique<broker::Server>(std::move(config));
  server_->start();
}

}  // namespace stoat::test
