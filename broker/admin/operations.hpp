#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/admin/limits.hpp"
#include "broker/admin/refusal.hpp"
#include "broker/home.hpp"
#include "broker/topology.hpp"
#include "broker/worker.hpp"
#include "wire/properties.hpp"

namespace stoat::broker::admin {

class Publisher;

// A user who has logged in. What the user may do is looked up at each operation, so a change takes
// effect at once.
struct Caller {
  std::string user;
  std::vector<std::string> tags;  // as they were at the login
};

struct QueueInfo {
  QueueSpec spec;
  QueueStats stats;
};

// A queue's place in a list: lists are ordered by vhost, then name.
using QueuePlace = Topology::Name;

struct QueueQuery {
  std::optional<std::string> vhost;  // all that the caller may see, when absent
  std::optional<QueuePlace> after;   // continues behind it
  std::size_t limit = kDefaultPage;
};

struct QueuePage {
  std::vector<QueueInfo> queues;
  std::optional<QueuePlace> next;  // more follow behind it
};

// Of the process; for whoever may see the whole broker.
struct NodeInfo {
  std::string name;
  std::uint64_t uptime_ms = 0;
  std::uint64_t connections = 0;
  std::uint64_t channels = 0;
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t disk_free_bytes = 0;
  std::uint64_t disk_free_limit_bytes = 0;
  std::string alarm;  // why publishers are held back; empty: they are not
  std::string listen_address;
  std::uint16_t amqp_port = 0;
  // Persistent messages in durable queues since the start: written to the store, and settled before
  // their turn came.
  std::uint64_t puts_written = 0;
  std::uint64_t puts_elided = 0;
};

// Counts of what the caller may see.
struct Overview {
  std::uint64_t vhosts = 0;
  std::uint64_t exchanges = 0;
  std::uint64_t queues = 0;
  std::uint64_t consumers = 0;
  std::uint64_t ready = 0;
  std::uint64_t unacked = 0;
  std::uint64_t published = 0;  // these three: totals since start
  std::uint64_t delivered = 0;
  std::uint64_t acked = 0;
  std::optional<NodeInfo> node;
};

struct PublishRequest {
  std::string vhost;
  std::string exchange;
  std::string routing_key;
  std::string payload;
  wire::Properties properties;
};

// What an admin door can do, whichever door it is: plain values in and out.
//
// Owner: Door. Thread: the door's, where each operation is awaited; an operation goes to a worker
// for what that worker owns, and stays there for one slice of it at most.
// Errors: Refusal.
// Does not: know JSON, HTTP or sockets.
class Operations {
 public:
  // `on_publish` runs on worker 0's thread before each publish.
  // REQUIRES: the workers are connected, and outlive stop().
  Operations(std::vector<Worker*> workers, std::uint16_t amqp_port,
             std::function<void()> on_publish);
  ~Operations();

  // Before the first publish.
  void start();
  // Publishes that wait for a confirm are refused, and so are later ones; refused logins wait no
  // longer.
  void stop();

  // From connect to the login.
  std::chrono::milliseconds login_timeout() const;
  // 401 when the password is wrong, the user has none of the tags of admin users, or is guest and
  // not on this machine: after config.login_failure_delay_ms.
  asio::awaitable<Caller> log_in(std::string user, std::string password, bool peer_is_loopback);

  asio::awaitable<Overview> overview(Caller caller);
  // The same, at most kSampleAge old.
  asio::awaitable<Overview> recent_overview(Caller caller);
  asio::awaitable<QueuePage> list_queues(Caller caller, QueueQuery query);
  // As a client of that user would publish, mandatory and confirmed: false when no queue took it,
  // true once it is as safe as its queues make it.
  asio::awaitable<bool> publish(Caller caller, PublishRequest request);
  // Every worker's loop has answered.
  asio::awaitable<void> check_ready();

 private:
  struct QueueWalk;

  Worker& control_worker() const { return *workers_.front(); }
  asio::awaitable<std::vector<QueueInfo>> next_slice(QueueWalk& walk);
  asio::awaitable<void> add_stats(std::vector<QueueInfo>& queues);
  asio::awaitable<void> add_whole_broker(Overview& overview);

  const std::vector<Worker*> workers_;
  const std::uint16_t amqp_port_;
  const std::string node_name_;
  const SteadyTime started_at_;
  std::unique_ptr<Publisher> publisher_;

  // Refused logins that have to wait.
  std::set<asio::steady_timer*> login_delays_;
  bool stopped_ = false;

  // Samples for recent_overview() by what they show: a user's share, or all ("").
  struct Sample {
    SteadyTime taken_at;
    Overview overview;
  };
  const Overview* find_sample(const std::string& key) const;
  std::map<std::string, Sample> samples_;
  // Whoever samples; the others wait for it.
  bool sampling_ = false;
  std::vector<std::shared_ptr<asio::steady_timer>> waiting_for_sample_;
};

}  // namespace stoat::broker::admin
