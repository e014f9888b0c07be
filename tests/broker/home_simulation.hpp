#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "home_driver.hpp"
#include "home_model.hpp"

namespace stoat::testing {

// A seeded life of a home: random clients over a store that completes when the dice say so, loses
// power and comes back. The model beside it checks every step; see home_model.hpp.
class Simulation {
 public:
  static constexpr int kSteps = 1500;
  static constexpr std::size_t kMaxQueues = 4;
  static constexpr std::size_t kMaxConnections = 4;
  static constexpr std::size_t kMaxConsumers = 8;

  explicit Simulation(std::uint64_t seed)
      : random_(seed), driver_(random_limits()), model_(driver_) {}

  // Until its end, or the first failure.
  void run();

 private:
  struct Transaction {
    std::uint64_t connection = 0;
    broker::Home::TxId id = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> publishes;  // queue, sequence
    std::vector<std::pair<std::uint64_t, std::uint64_t>> settles;
    broker::SettleKind kind = broker::SettleKind::ack;
    bool committed = false;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class Map>
  auto& any(Map& map) {
    return *std::next(map.begin(), static_cast<std::ptrdiff_t>(below(map.size())));
  }

  broker::HomeLimits random_limits();

  void turn();
  // What the store does, one completion at a time.
  void store_step();
  void calm_down();
  void act();

  // --- queues ---

  void make_queue();
  void delete_queue();
  void remove_queue(std::uint64_t id);
  void purge();

  // --- publishing ---

  std::uint64_t any_connection() {
    if (model_.connections.empty() || (model_.connections.size() < kMaxConnections && chance(10))) {
      const std::uint64_t id = next_connection_++;
      model_.connections[id];
      return id;
    }
    return any(model_.connections).first;
  }

  std::string next_body() { return std::to_string(next_message_++) + std::string(below(200), '.'); }

  void publish();

  // --- consuming ---

  void consume();
  void cancel();
  void change_consumer();
  void grant_leases();
  void get();
  void write_out();
  void write(std::uint64_t connection, std::uint64_t count);
  void give_back_returned();
  // Settles a random stretch of what a connection holds, neighbours as ranges.
  void settle();
  static void add_settle(std::vector<broker::Settle>& settles, const HomeModel::Message& message,
                         broker::SettleKind kind);
  void lose_connection();

  // --- transactions ---

  void prepare();
  void release();
  // All of a transaction or nothing.
  void check_transactions_after_crash();

  // --- stops ---

  void restart(bool clean);
  // Everything is written, settled and consumed: nothing may be left anywhere.
  void wind_up();
  void drain(std::uint64_t connection, std::uint64_t queue);

  std::mt19937_64 random_;
  HomeDriver driver_;
  HomeModel model_;
  std::map<std::uint64_t, Transaction> transactions_;
  // Answers to gets of connections that are gone: queue, sequence.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> returned_;
  std::uint64_t life_ = 0;
  std::uint64_t next_queue_ = 1;
  std::uint64_t next_connection_ = 1;
  std::uint64_t next_consumer_ = 1;
  std::uint64_t next_message_ = 1;
  std::uint64_t next_transaction_ = 1;
};

}  // namespace stoat::testing
