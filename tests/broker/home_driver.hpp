#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "broker/home.hpp"
#include "manual_store.hpp"

namespace stoat::testing {

broker::MessagePtr make_message(std::string_view body, bool persistent);

// A home without sockets or threads: the test publishes, consumes and settles as connections would,
// and reads what was staged for them. What the store completes runs when the test says so.
class HomeDriver {
 public:
  explicit HomeDriver(broker::HomeLimits limits = {});

  ManualStore store;
  broker::HomeLimits limits;
  std::unique_ptr<broker::Home> home;
  // All that was handed to each connection, in order, until the test takes it out.
  std::map<std::uint64_t, broker::ToConnection> inbox;
  std::vector<QueueId> unused;
  // What the store had at the last restart().
  store::Recovered recovered;

  // A new home over the same store, its queues recreated from `specs`.
  void restart(const std::vector<broker::QueueSpec>& specs);
  void turn() { home->end_turn(); }
  // Runs what the store posted, as turns; `after` each.
  void run_posted(const std::function<void()>& after = {});
  // Completes what the store holds until nothing is left to do.
  void settle_down();

  broker::QueueSpec make_queue(std::uint64_t id, bool durable = true, bool auto_delete = false,
                               bool single_active = false);
  broker::ConsumerSpec consumer(std::uint64_t connection, std::uint64_t id,
                                std::uint16_t prefetch = 0) const;
  broker::ConsumeResult consume(std::uint64_t queue, broker::ConsumerSpec spec);
  void publish(std::uint64_t connection, std::uint64_t queue, std::string_view body,
               std::uint64_t tag = 0, bool persistent = true);
  void settle(std::uint64_t connection, std::uint64_t queue, broker::SettleKind kind,
              std::uint64_t first, std::uint64_t last);
  void written(std::uint64_t connection, std::uint64_t bytes);

  // Bodies of the deliveries to a connection since the last call, a trailing * for redelivered.
  std::vector<std::string> bodies(std::uint64_t connection);
  std::vector<broker::Delivery> deliveries(std::uint64_t connection);
  // Confirmed ranges "first-last" since the last call.
  std::vector<std::string> confirms(std::uint64_t connection);
  std::uint64_t taken_bytes(std::uint64_t connection);

 private:
  void make_home();

  SystemClock clock_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace stoat::testing
