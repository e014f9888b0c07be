// What connections do: publish, consume, get, settle, and go away.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "home_simulation.hpp"

namespace stoat::testing {

using broker::SettleKind;
using State = HomeModel::Message::State;

void Simulation::publish() {
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

void Simulation::consume() {
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

void Simulation::cancel() {
  if (model_.consumers.empty()) return;
  const auto [id, consumer] = any(model_.consumers);
  EXPECT_TRUE(driver_.home->cancel(QueueId(consumer.queue), ConnectionId(consumer.connection),
                                   ConsumerId(id)));
  model_.absorb();  // what was staged came before
  model_.consumers.erase(id);
}

void Simulation::change_consumer() {
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

void Simulation::grant_leases() {
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

void Simulation::get() {
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

void Simulation::write_out() {
  give_back_returned();
  for (auto& [connection, state] : model_.connections) {
    if (state.unwritten.empty()) continue;
    const std::uint64_t count = 1 + below(state.unwritten.size());
    write(connection, count);
  }
}

void Simulation::write(std::uint64_t connection, std::uint64_t count) {
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

void Simulation::give_back_returned() {
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

void Simulation::settle() {
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

void Simulation::add_settle(std::vector<broker::Settle>& settles, const HomeModel::Message& message,
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

void Simulation::lose_connection() {
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

}  // namespace stoat::testing
