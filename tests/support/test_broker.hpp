#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "broker/config.hpp"
#include "broker/server.hpp"
#include "tests/support/temp_dir.hpp"

namespace stoat::test {

// The port in STOAT_TEST_PORT: run the tests against the broker that listens there, whichever it
// is, instead of an own one.
std::optional<std::uint16_t> external_port();

// A broker in this process on a fresh data folder and a port of the system's choice.
//
// Owner: one test, or the process for all of them. Thread: one.
class TestBroker {
 public:
  // `adjust` changes the configuration before the start; folder and ports are set already.
  explicit TestBroker(std::function<void(broker::Config&)> adjust = {});
  ~TestBroker();

  std::uint16_t port() const { return server_->amqp_port(); }
  // Stops cleanly and starts again on the same folder; the port changes.
  void restart();

 private:
  void start();

  TempDir folder_;
  std::function<void(broker::Config&)> adjust_;
  std::unique_ptr<broker::Server> server_;
};

}  // namespace stoat::test
