#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/id_map.hpp"
#include "broker/worker.hpp"

namespace stoat::broker::admin {

// Publishes for admin users: routed by the worker's replica and confirmed by the homes like a
// client's, under the connection id that no client has (kInternalConnection).
//
// Owner: Operations. Thread: its worker's.
// Invariant: a publish is answered once, when all homes have decided it or at stop().
// Does not: check what a channel checks of a client's frames; what it is given is well formed.
class Publisher {
 public:
  // `on_publish` runs on the worker's thread before each publish.
  Publisher(Worker& worker, std::function<void()> on_publish)
      : worker_(worker), on_publish_(std::move(on_publish)) {}

  // Who publishes where; the message carries exchange and routing key.
  struct Request {
    std::string user;
    std::string vhost;
    MessagePtr message;
    std::vector<std::string> extra_keys;  // CC and BCC
  };

  Worker& worker() const { return worker_; }
  // Any thread, before the first publish.
  void start();
  // Any thread.
  void stop();

  // Run on the worker. False when no queue took it. Throws Refusal.
  asio::awaitable<bool> publish(Request request);

 private:
  struct Pending {
    explicit Pending(asio::io_context& io) : decided(io, SteadyTime::max()) {}
    std::size_t homes_left = 0;
    bool rejected = false;
    asio::steady_timer decided;  // cancelled once it is
  };

  std::vector<QueueId> route(const Request& request);
  std::shared_ptr<Pending> send(const MessagePtr& message, std::vector<QueueId> queues);
  void on_answers(const ToConnection& answers);

  Worker& worker_;
  const std::function<void()> on_publish_;
  PublishTag last_tag_;
  IdMap<PublishTag, std::shared_ptr<Pending>> pending_;
  bool stopped_ = false;
};

}  // namespace stoat::broker::admin
