// A seeded life of a home: random clients over a store that completes when the dice say so, loses
// power and comes back. The model beside it checks every step; see home_model.hpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "home_model.hpp"
#include "tests/support/seed.hpp"

namespace stoat::testing {
namespace {

using broker::SettleKind;
using State = HomeModel::Message::State;

constexpr int kSteps = 1500;
constexpr std::size_t kMaxQueues = 4;
constexpr std::size_t kMaxConnections = 4;
constexpr std::size_t kMaxConsumers = 8;

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed), driver_(random_limits()), model_(driver_) {}

  void run() {
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
      act();
      turn();
    }
    if (!::testing::Test::HasFailure()) wind_up();
  }

 private:
  struct Transaction {
    std::uint64_t connection = 0;
    broker::Home::TxId id = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> publishes;  // queue, sequence
    std::vector<std::pair<std::uint64_t, std::uint64_t>> settles;
    SettleKind kind = SettleKind::ack;
    bool committed = false;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class Map>
  auto& any(Map& map) {
    return *std::next(map.begin(), static_cast<std::ptrdiff_t>(below(map.size())));
  }

  broker::HomeLimits random_limits() {
    broker::HomeLimits limits;
    limits.min_queue_window_bytes = 200 + below(500);
    limits.max_queue_window_bytes = limits.min_queue_window_bytes + below(4000);
    limits.home_window_bytes = limits.max_queue_window_bytes + below(3000);
    limits.read_messages = 1 + below(8);
    limits.read_bytes = 200 + below(4000);
    limits.max_batch_bytes = 100 + below(3000);
    limits.max_waiting_ranges = 1 + below(20);
    limits.min_numbers_step = 1 + below(8);
    limits.max_numbers_step = limits.min_numbers_step * (1 + below(64));
    limits.delivery_window_bytes = 100 + below(3000);
    return limits;
  }

  void turn() {
    driver_.turn();
    model_.absorb();
    model_.check_counts();
    for (const QueueId queue : std::exchange(driver_.unused, {})) {
      model_.queues.at(queue.value).dying = true;
      remove_queue(queue.value);
    }
  }

  // What the store does, one completion at a time.
  void store_step() {
    if (driver_.store.batches_waiting() > 0 && chance(60)) {
      driver_.store.complete_batch();
    } else if (driver_.store.reads_waiting() > 0) {
      driver_.store.complete_read(below(driver_.store.reads_waiting()));
    }
    driver_.run_posted([this] { model_.absorb(); });
  }

  void calm_down() {
    turn();
    driver_.run_posted([this] { model_.absorb(); });
    while (driver_.store.batches_waiting() + driver_.store.reads_waiting() > 0) {
      store_step();
      turn();
    }
  }

  void act() {
    const std::uint64_t dice = below(100);
    if (dice < 25) return publish();
    if (dice < 45) return settle();
    if (dice < 60) return store_step();
    if (dice < 70) return write_out();
    if (dice < 74) return consume();
    if (dice < 77) return grant_leases();
    if (dice < 79) return cancel();
    if (dice < 81) return change_consumer();
    if (dice < 85) return get();
    if (dice < 86) return purge();
    if (dice < 88) return make_queue();
    if (dice < 89) return delete_queue();
    if (dice < 93) return prepare();
    if (dice < 95) return release();
    if (dice < 96) return lose_connection();
    if (dice < 98) {
      calm_down();
      return model_.check_nothing_stands_still();
    }
    if (chance(10)) return restart(false);
    if (chance(10)) return restart(true);
  }

  // --- queues ---

  void make_queue() {
    if (model_.queues.size() >= kMaxQueues) return;
    const std::uint64_t id = next_queue_++;
    const bool single_active = chance(15);
    HomeModel::Queue queue;
    queue.spec = driver_.make_queue(id, chance(70), chance(15), single_active);
    queue.single_active = single_active;
    model_.queues[id] = queue;
  }

  void delete_queue() {
    if (model_.queues.empty()) return;
    remove_queue(any(model_.queues).first);
  }

  void remove_queue(std::uint64_t id) {
    std::uint64_t ready = 0;
    for (const auto& [sequence, message] : model_.queues.at(id).messages) {
      if (message.state == State::ready) ++ready;
    }
    const auto deleted = driver_.home->delete_queue(QueueId(id), false, false);
    EXPECT_EQ(deleted.result, broker::Home::DeleteResult::ok);
    EXPECT_EQ(deleted.messages, ready);
    model_.queues.erase(id);
    driver_.store.save_topology({{}, {}, {}, {QueueId(id)}}, [](const auto&) {});
    calm_down();
  }

  void purge() {
    if (model_.queues.empty()) return;
    auto& [id, queue] = any(model_.queues);
    std::uint64_t ready = 0;
    for (auto& [sequence, message] : queue.messages) {
      if (message.state != State::ready) continue;
      message.state = State::over;
      ++ready;
    }
    EXPECT_EQ(driver_.home->purge(QueueId(id)), ready);
  }

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

  void publish() {
    const std::uint64_t connection = any_connection();
    auto& publisher = model_.connections.at(connection);
    const broker::ChannelRef channel{ChannelNumber(1), ChannelIncarnation(1)};
    const bool confirms = chance(80);
    broker::ToHome batch;
    for (std::uint64_t count = 1 + below(6); count > 0; --count) {
      const bool persistent = chance(70);
      const std::string body = next_body();
      const auto message = make_message(body, persistent);
      const std::uint64_t tag = confirms ? publisher.next_tag++ : 0;
      HomeModel::Tag targets;
      for (std::uint64_t copies = 1 + below(2); copies > 0; --copies) {
        if (model_.queues.empty()) break;
        const std::uint64_t queue = chance(3) ? 999'999 : any(model_.queues).first;
        batch.publishes.push_back({QueueId(queue), message, channel, PublishTag(tag)});
        publisher.untaken_bytes += message->stored().size();
        if (!model_.queues.contains(queue)) continue;
        const auto& added = model_.add(queue, body, message->stored().size(), persistent);
        targets.messages.emplace_back(queue, added.sequence);
      }
      if (tag != 0 && !batch.publishes.empty() && batch.publishes.back().tag.value == tag) {
        publisher.unconfirmed[tag] = targets;
      }
    }
    driver_.home->take(ConnectionId(connection), WorkerIndex(0), batch);
  }

  // --- consuming ---

  void consume() {
    if (model_.queues.empty() || model_.consumers.size() >= kMaxConsumers) return;
    const std::uint64_t connection = any_connection();
    auto& [queue, state] = any(model_.queues);
    const std::uint64_t id = next_consumer_++;
    auto spec = driver_.consumer(connection, id, static_cast<std::uint16_t>(below(6)));
    spec.no_ack = chance(20);
    spec.channel_limited = chance(25);
    spec.paused = chance(10);
    spec.priority = static_cast<std::int32_t>(below(3));
    const auto result = driver_.home->consume(QueueId(queue), spec);
    EXPECT_EQ(result, broker::ConsumeResult::ok);
    HomeModel::Consumer consumer;
    consumer.connection = connection;
    consumer.queue = queue;
    consumer.prefetch = spec.prefetch;
    consumer.no_ack = spec.no_ack;
    consumer.limited = spec.channel_limited;
    consumer.paused = spec.paused;
    model_.consumers[id] = consumer;
  }

  void cancel() {
    if (model_.consumers.empty()) return;
    const auto [id, consumer] = any(model_.consumers);
    EXPECT_TRUE(driver_.home->cancel(QueueId(consumer.queue), ConnectionId(consumer.connection),
                                     ConsumerId(id)));
    model_.absorb();  // what was staged came before
    model_.consumers.erase(id);
  }

  void change_consumer() {
    if (model_.consumers.empty()) return;
    auto& [id, consumer] = any(model_.consumers);
    const QueueId queue(consumer.queue);
    const ConnectionId connection(consumer.connection);
    if (chance(60)) {
      consumer.paused = !consumer.paused;
      driver_.home->pause(queue, connection, ConsumerId(id), consumer.paused);
    } else if (!consumer.wants_lease) {
      consumer.limited = !consumer.limited;
      driver_.home->set_channel_limited(queue, connection, ConsumerId(id), consumer.limited);
    }
  }

  void grant_leases() {
    for (auto& [id, consumer] : model_.consumers) {
      if (!consumer.wants_lease || chance(30)) continue;
      const auto count = static_cast<std::uint32_t>(1 + below(5));
      consumer.wants_lease = false;
      consumer.leased += count;
      broker::ToHome batch;
      batch.leases.push_back({QueueId(consumer.queue), ConsumerId(id), count});
      driver_.home->take(ConnectionId(consumer.connection), WorkerIndex(0), batch);
    }
  }

  void get() {
    if (model_.queues.empty()) return;
    const std::uint64_t connection = any_connection();
    const std::uint64_t queue = any(model_.queues).first;
    const std::uint64_t life = life_;
    driver_.home->get(QueueId(queue), [this, connection, queue, life](const broker::Got& got) {
      if (life != life_) return;
      model_.got(connection, queue, got);
      // Its connection is gone: it goes back, as the channel would see to.
      if (got.message == nullptr || model_.connections.contains(connection)) return;
      returned_.push_back({queue, got.position.sequence.value});
    });
  }

  void write_out() {
    give_back_returned();
    for (auto& [connection, state] : model_.connections) {
      if (state.unwritten.empty()) continue;
      const std::uint64_t count = 1 + below(state.unwritten.size());
      write(connection, count);
    }
  }

  void write(std::uint64_t connection, std::uint64_t count) {
    auto& state = model_.connections.at(connection);
    broker::ToHome batch;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto [queue, sequence, size] = state.unwritten[i];
      batch.written_bytes += size;
      state.unwritten_bytes -= size;
      const auto found = model_.queues.find(queue);
      if (found == model_.queues.end()) continue;
      auto& message = found->second.messages.at(sequence);
      if (message.state != State::unacked || message.connection != connection) continue;
      message.written = true;
      const auto consumer = model_.consumers.find(message.consumer);
      if (consumer == model_.consumers.end() || !consumer->second.no_ack) continue;
      model_.settle(message, SettleKind::sent);
      batch.settles.push_back(
          {QueueId(queue), 0, SettleKind::sent, Sequence(sequence), Sequence(sequence)});
    }
    state.unwritten.erase(state.unwritten.begin(),
                          state.unwritten.begin() + static_cast<std::ptrdiff_t>(count));
    driver_.home->take(ConnectionId(connection), WorkerIndex(0), batch);
  }

  void give_back_returned() {
    broker::ToHome batch;
    for (const auto& [queue, sequence] : std::exchange(returned_, {})) {
      if (!model_.queues.contains(queue)) continue;
      auto& message = model_.at(queue, sequence);
      if (message.state != State::unacked) continue;
      model_.settle(message, SettleKind::undelivered);
      batch.settles.push_back(
          {QueueId(queue), 0, SettleKind::undelivered, Sequence(sequence), Sequence(sequence)});
    }
    driver_.home->take(ConnectionId(999'999), WorkerIndex(0), batch);
  }

  // Settles a random stretch of what a connection holds, neighbours as ranges.
  void settle() {
    if (model_.connections.empty()) return;
    const std::uint64_t connection = any(model_.connections).first;
    auto held = model_.held_by(connection);
    std::erase_if(held, [](const auto* m) { return !m->written; });
    if (held.empty()) return;
    const std::uint64_t first = below(held.size());
    const std::uint64_t count = 1 + below(held.size() - first);
    const std::uint64_t dice = below(100);
    const SettleKind kind = dice < 75   ? SettleKind::ack
                            : dice < 85 ? SettleKind::requeue
                            : dice < 92 ? SettleKind::redeliver
                                        : SettleKind::reject;
    broker::ToHome batch;
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (chance(10)) continue;
      add_settle(batch.settles, *held[i], kind);
      model_.settle(*held[i], kind);
    }
    driver_.home->take(ConnectionId(connection), WorkerIndex(0), batch);
  }

  static void add_settle(std::vector<broker::Settle>& settles, const HomeModel::Message& message,
                         SettleKind kind) {
    const Sequence at(message.sequence);
    if (!settles.empty()) {
      broker::Settle& last = settles.back();
      if (last.queue.value == message.queue && last.kind == kind && last.last.next() == at) {
        last.last = at;
        return;
      }
    }
    settles.push_back({QueueId(message.queue), 0, kind, at, at});
  }

  void lose_connection() {
    if (model_.connections.empty()) return;
    const std::uint64_t connection = any(model_.connections).first;
    std::vector<std::uint64_t> leaving;
    for (const auto& [id, consumer] : model_.consumers) {
      if (consumer.connection == connection) leaving.push_back(id);
    }
    for (const std::uint64_t id : leaving) {
      const std::uint64_t queue = model_.consumers.at(id).queue;
      EXPECT_TRUE(driver_.home->cancel(QueueId(queue), ConnectionId(connection), ConsumerId(id)));
      model_.absorb();
      model_.consumers.erase(id);
    }
    broker::ToHome batch;
    for (HomeModel::Message* message : model_.held_by(connection)) {
      const SettleKind kind = message->written ? SettleKind::requeue : SettleKind::undelivered;
      add_settle(batch.settles, *message, kind);
      model_.settle(*message, kind);
    }
    driver_.home->take(ConnectionId(connection), WorkerIndex(0), batch);
    driver_.home->forget_connection(ConnectionId(connection));
    model_.connections.erase(connection);
  }

  // --- transactions ---

  void prepare() {
    if (model_.queues.empty()) return;
    const std::uint64_t number = next_transaction_++;
    Transaction transaction;
    transaction.connection = any_connection();
    transaction.kind = chance(80) ? SettleKind::ack : SettleKind::requeue;
    broker::TxWork work;
    for (HomeModel::Message* message : model_.held_by(transaction.connection)) {
      if (!message->written || chance(50)) continue;
      add_settle(work.settles, *message, transaction.kind);
      message->transaction = number;
      transaction.settles.emplace_back(message->queue, message->sequence);
    }
    for (std::uint64_t count = below(4); count > 0; --count) {
      const std::uint64_t queue = any(model_.queues).first;
      const bool persistent = chance(70);
      const std::string body = next_body();
      const auto message = make_message(body, persistent);
      auto& added = model_.add(queue, body, message->stored().size(), persistent);
      added.state = State::prepared;
      transaction.publishes.emplace_back(queue, added.sequence);
      work.publishes.push_back({QueueId(queue), message});
    }
    store::Batch batch;
    transaction.id =
        driver_.home->prepare(ConnectionId(transaction.connection), std::move(work), batch);
    driver_.store.submit(std::move(batch), [this, number, life = life_](const auto&) {
      if (life != life_) return;
      auto& done = transactions_.at(number);
      done.committed = true;
      for (const auto& [queue, sequence] : done.publishes) {
        if (model_.queues.contains(queue)) model_.at(queue, sequence).safe = true;
      }
    });
    transactions_[number] = std::move(transaction);
  }

  void release() {
    for (auto at = transactions_.begin(); at != transactions_.end();) {
      if (!at->second.committed) {
        ++at;
        continue;
      }
      const Transaction done = std::move(at->second);
      at = transactions_.erase(at);
      driver_.home->release(done.id);
      for (const auto& [queue, sequence] : done.publishes) {
        if (model_.queues.contains(queue)) model_.at(queue, sequence).state = State::ready;
      }
      for (const auto& [queue, sequence] : done.settles) {
        if (model_.queues.contains(queue)) model_.settle(model_.at(queue, sequence), done.kind);
      }
    }
  }

  // All of a transaction or nothing.
  void check_transactions_after_crash() {
    for (const auto& [number, transaction] : transactions_) {
      std::set<bool> there;
      for (const auto& [queue, sequence] : transaction.publishes) {
        if (!model_.queues.contains(queue) || !model_.at(queue, sequence).durable) continue;
        there.insert(driver_.store.stream(QueueId(queue)).put.contains(sequence));
      }
      for (const auto& [queue, sequence] : transaction.settles) {
        if (transaction.kind != SettleKind::ack || !model_.queues.contains(queue)) continue;
        if (!model_.at(queue, sequence).durable) continue;
        there.insert(driver_.store.stream(QueueId(queue)).settled.contains(sequence));
      }
      EXPECT_LE(there.size(), 1u) << "half a transaction";
      EXPECT_FALSE(transaction.committed && there.contains(false)) << "a commit was lost";
    }
  }

  // --- stops ---

  void restart(bool clean) {
    if (clean) {
      std::vector<std::uint64_t> all;
      for (const auto& [id, state] : model_.connections) all.push_back(id);
      while (!model_.connections.empty()) {
        lose_connection();
        turn();
      }
      calm_down();
      release();
      turn();
      while (!returned_.empty()) {
        give_back_returned();
        calm_down();
      }
      bool drained = false;
      driver_.home->drain([&] { drained = true; });
      calm_down();
      EXPECT_TRUE(drained);
      driver_.store.close(driver_.home->exact_numbers());
    } else {
      driver_.store.crash(below(driver_.store.unsynced() + 1));
      check_transactions_after_crash();
    }
    ++life_;
    transactions_.clear();
    returned_.clear();
    model_.reset_to_store(clean);
    std::vector<broker::QueueSpec> specs;
    for (const auto& [id, queue] : model_.queues) specs.push_back(queue.spec);
    driver_.restart(specs);
    for (auto& [id, queue] : model_.queues) {
      queue.dying = false;
      for (const auto& stream : driver_.recovered.streams) {
        if (stream.stream.queue.value == id) queue.next = stream.next.value;
      }
    }
  }

  // Everything is written, settled and consumed: nothing may be left anywhere.
  void wind_up() {
    while (!model_.connections.empty()) {
      lose_connection();
      turn();
    }
    calm_down();
    release();
    turn();
    while (!returned_.empty()) {
      give_back_returned();
      calm_down();
    }
    const std::uint64_t connection = any_connection();
    std::vector<std::uint64_t> ids;
    for (const auto& [id, queue] : model_.queues) ids.push_back(id);
    for (const std::uint64_t id : ids) drain(connection, id);
    bool drained = false;
    driver_.home->drain([&] { drained = true; });
    calm_down();
    EXPECT_TRUE(drained);
    for (const auto& [id, queue] : model_.queues) {
      const auto stats = driver_.home->queue_stats(QueueId(id));
      EXPECT_EQ(stats->ready + stats->unacked + stats->memory_bytes, 0u);
      EXPECT_TRUE(driver_.store.stream(QueueId(id)).alive.empty());
    }
  }

  void drain(std::uint64_t connection, std::uint64_t queue) {
    HomeModel::Consumer consumer;
    consumer.connection = connection;
    consumer.queue = queue;
    const std::uint64_t id = next_consumer_++;
    model_.consumers[id] = consumer;
    EXPECT_EQ(driver_.home->consume(QueueId(queue), driver_.consumer(connection, id)),
              broker::ConsumeResult::ok);
    for (;;) {
      calm_down();
      while (!returned_.empty()) {
        give_back_returned();
        calm_down();
      }
      auto& state = model_.connections.at(connection);
      if (state.unwritten.empty() || ::testing::Test::HasFailure()) break;
      write(connection, state.unwritten.size());
      broker::ToHome batch;
      for (HomeModel::Message* message : model_.held_by(connection)) {
        add_settle(batch.settles, *message, SettleKind::ack);
        model_.settle(*message, SettleKind::ack);
      }
      driver_.home->take(ConnectionId(connection), WorkerIndex(0), batch);
    }
    for (const auto& [sequence, message] : model_.queues.at(queue).messages) {
      EXPECT_EQ(message.state, State::over) << "never delivered: " << queue << ':' << sequence;
    }
  }

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

TEST(HomeSimulation, KeepsItsPromises) {
  const std::uint64_t seed = test_seed();
  constexpr int kLives = 40;
  for (std::uint64_t life = 0; life < kLives && !::testing::Test::HasFailure(); ++life) {
    SCOPED_TRACE(seed_text(seed + life));
    Simulation(seed + life).run();
  }
}

}  // namespace
}  // namespace stoat::testing
