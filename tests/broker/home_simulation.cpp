#include "home_simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stoat::testing {

using broker::SettleKind;
using State = HomeModel::Message::State;

void Simulation::run() {
  for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
    act();
    turn();
  }
  if (!::testing::Test::HasFailure()) wind_up();
}

broker::HomeLimits Simulation::random_limits() {
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

void Simulation::turn() {
  driver_.turn();
  model_.absorb();
  model_.check_counts();
  for (const QueueId queue : std::exchange(driver_.unused, {})) {
    model_.queues.at(queue.value).dying = true;
    remove_queue(queue.value);
  }
}

void Simulation::store_step() {
  if (driver_.store.batches_waiting() > 0 && chance(60)) {
    driver_.store.complete_batch();
  } else if (driver_.store.reads_waiting() > 0) {
    driver_.store.complete_read(below(driver_.store.reads_waiting()));
  }
  driver_.run_posted([this] { model_.absorb(); });
}

void Simulation::calm_down() {
  turn();
  driver_.run_posted([this] { model_.absorb(); });
  while (driver_.store.batches_waiting() + driver_.store.reads_waiting() > 0) {
    store_step();
    turn();
  }
}

void Simulation::act() {
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

void Simulation::make_queue() {
  if (model_.queues.size() >= kMaxQueues) return;
  const std::uint64_t id = next_queue_++;
  const bool single_active = chance(15);
  HomeModel::Queue queue;
  queue.spec = driver_.make_queue(id, chance(70), chance(15), single_active);
  queue.single_active = single_active;
  model_.queues[id] = queue;
}

void Simulation::delete_queue() {
  if (model_.queues.empty()) return;
  remove_queue(any(model_.queues).first);
}

void Simulation::remove_queue(std::uint64_t id) {
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

void Simulation::purge() {
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

void Simulation::prepare() {
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

void Simulation::release() {
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

void Simulation::check_transactions_after_crash() {
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

void Simulation::restart(bool clean) {
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

void Simulation::wind_up() {
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

void Simulation::drain(std::uint64_t connection, std::uint64_t queue) {
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

}  // namespace stoat::testing
