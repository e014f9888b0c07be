#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "broker/config.hpp"

namespace stoat::broker {

// A whole broker: store, workers, control, listeners, admin door. Several may live in one process
// (tests and Stoat::testing do that), each on its own data folder.
//
// Thread: start() and stop() from one thread; the accessors from any once start() returned.
class Server {
 public:
  // Throws ConfigError, store::StoreOpenError.
  explicit Server(Config config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Called once, on a thread of the store's, when a write or sync failed: nothing is confirmed any
  // more and the process should stop. Set before start().
  void on_fatal(std::function<void(const std::string&)> handler);

  // Recovers, starts the workers, listens. Returns when clients can connect. Throws what the
  // constructor throws, and std::runtime_error when an address cannot be bound.
  void start();
  // Listeners close, clients get 320 CONNECTION_FORCED, everything taken is flushed, the folder is
  // marked clean. Blocking, bounded in time by kStopTimeout per connection. Idempotent.
  void stop();

  // The ports really bound: with port 0 the system chose. 0: that door is closed.
  std::uint16_t amqp_port() const;
  std::uint16_t admin_port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoat::broker
