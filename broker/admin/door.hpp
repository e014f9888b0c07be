#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/worker.hpp"

namespace stoat::broker::admin {

// The admin port: HTTP and JSON-RPC over WebSocket, on a thread of its own, so that admin work
// takes from the workers only what it asks of them.
//
// Owner: Server. Thread: any one; what it serves runs on its own.
// Invariant: nothing of it runs once stop() has returned.
class Door {
 public:
  // Binds and listens. Throws boost::system::system_error. `on_publish` runs on worker 0's thread
  // before each publish: what watches memory and disk may be asleep while no client is connected.
  // REQUIRES: the workers are connected, and run from start() to stop(). What they still hold of
  // this door's when they go must find it: the door is destroyed after them.
  Door(std::vector<Worker*> workers, const std::string& address, std::uint16_t port,
       std::uint16_t amqp_port, std::function<void()> on_publish);
  ~Door();

  std::uint16_t port() const;
  void start();
  // Sessions get a goodbye; waits for them, not for long. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoat::broker::admin
