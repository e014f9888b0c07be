#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <memory>
#include <string>
#include <vector>

#include "broker/admin/operations.hpp"
#include "broker/control.hpp"
#include "broker/definitions.hpp"
#include "broker/worker.hpp"
#include "store/open.hpp"

namespace stoat::test {

// A broker without sockets, over the store in memory, and the operations of an admin door on it.
// Beside guest on vhost "/" it has vhost "other" and these users, whose password is their name:
// "ops" (monitoring, no permissions), "lena" (management; on "other" she may write exchanges and
// queues that begin with "l"), "app" (no tag; all permissions on "/").
//
// Owner: one test. Thread: the test's; awaited operations run on it.
class AdminBroker {
 public:
  explicit AdminBroker(std::uint32_t worker_count = 2);
  ~AdminBroker();

  broker::admin::Operations& operations() { return operations_; }
  std::uint64_t publishes_announced() const { return publishes_announced_; }

  // Runs an operation as the door would and waits for it; throws what it throws.
  template <class T>
  T await(boost::asio::awaitable<T> operation) {
    auto result = boost::asio::co_spawn(io_, std::move(operation), boost::asio::use_future);
    io_.restart();
    io_.run();
    return result.get();
  }

  void import(broker::Definitions definitions);
  void declare(const std::string& vhost, const std::string& queue, wire::Table arguments = {});
  void bind(const std::string& vhost, const std::string& exchange, const std::string& queue,
            const std::string& key, wire::Table arguments = {});
  // basic.get, acknowledged; nullptr: the queue is empty.
  broker::MessagePtr take(const std::string& vhost, const std::string& queue);
  void set_alarm(const std::string& reason);

 private:
  broker::Config config_;
  SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  boost::asio::io_context io_;
  std::vector<std::unique_ptr<broker::Worker>> workers_;
  std::vector<broker::Worker*> worker_list_;
  broker::Control control_;
  std::atomic<std::uint64_t> publishes_announced_{0};
  broker::admin::Operations operations_;
};

}  // namespace stoat::test
