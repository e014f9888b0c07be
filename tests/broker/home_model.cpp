#include "home_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoat::testing {

using broker::SettleKind;
using State = HomeModel::Message::State;

HomeModel::Message& HomeModel::add(std::uint64_t queue, const std::string& body, std::size_t size,
                                   bool persistent) {
  Queue& to = queues.at(queue);
  Message message;
  message.queue = queue;
  message.sequence = to.next++;
  message.body = body;
  message.size = size;
  message.durable = persistent && to.spec.durable;
  return to.messages[message.sequence] = message;
}

void HomeModel::settle(Message& message, SettleKind kind) {
  EXPECT_EQ(message.state, State::unacked) << message.queue << ':' << message.sequence;
  const bool over =
      kind == SettleKind::ack || kind == SettleKind::sent || kind == SettleKind::reject;
  message.state = over ? State::over : State::ready;
  if (!over && kind != SettleKind::undelivered) message.redelivered = true;
  message.transaction.reset();
  const auto consumer = consumers.find(message.consumer);
  if (consumer != consumers.end()) --consumer->second.unacked;
}

std::vector<HomeModel::Message*> HomeModel::held_by(std::uint64_t connection) {
  std::vector<Message*> held;
  for (auto& [id, queue] : queues) {
    for (auto& [sequence, message] : queue.messages) {
      if (message.state == State::unacked && message.connection == connection &&
          !message.transaction) {
        held.push_back(&message);
      }
    }
  }
  return held;
}

void HomeModel::absorb() {
  for (auto& [connection, box] : driver_.inbox) {
    const broker::ToConnection batch = std::exchange(box, {});
    if (batch.empty()) continue;
    if (!connections.contains(connection)) {
      ADD_FAILURE() << "something for connection " << connection << ", which is gone";
      return;
    }
    for (const auto& delivery : batch.deliveries) absorb_delivery(connection, delivery);
    for (const auto& confirm : batch.confirms) absorb_confirm(connection, confirm);
    for (const auto& wanted : batch.wanted) {
      Consumer& consumer = consumers.at(wanted.consumer.value);
      EXPECT_FALSE(std::exchange(consumer.wants_lease, true)) << "asked twice for a lease";
    }
    for (const auto& returned : batch.returned) {
      const auto consumer = consumers.find(returned.consumer.value);
      if (consumer == consumers.end()) continue;
      consumer->second.leased -= returned.count;
      EXPECT_GE(consumer->second.leased, 0) << "more returned than was leased";
    }
    for (const auto& cancelled : batch.cancelled) consumers.erase(cancelled.consumer.value);
    Connection& publisher = connections.at(connection);
    EXPECT_LE(batch.taken_bytes, publisher.untaken_bytes) << "credited twice";
    publisher.untaken_bytes -= batch.taken_bytes;
  }
  check_order();
}

void HomeModel::absorb_delivery(std::uint64_t connection, const broker::Delivery& delivery) {
  const std::uint64_t sequence = delivery.position.sequence.value;
  const auto queue = queues.find(delivery.queue.value);
  ASSERT_TRUE(queue != queues.end() && queue->second.messages.contains(sequence))
      << "delivered what was never published: " << delivery.queue << ':' << sequence;
  const auto found = consumers.find(delivery.consumer.value);
  ASSERT_TRUE(found != consumers.end()) << "delivery to a consumer that is gone";
  Consumer& consumer = found->second;
  Message& message = queue->second.messages.at(sequence);
  check_delivered(message, *delivery.message, delivery.redelivered);
  EXPECT_EQ(consumer.queue, delivery.queue.value);
  EXPECT_EQ(consumer.no_ack, delivery.no_ack);
  message.consumer = delivery.consumer.value;
  message.connection = connection;
  message.written = false;
  ++consumer.unacked;
  if (consumer.prefetch > 0 && !consumer.no_ack) {
    EXPECT_LE(consumer.unacked, consumer.prefetch) << "past the prefetch";
  }
  if (consumer.limited && !consumer.no_ack) {
    --consumer.leased;
    EXPECT_GE(consumer.leased, 0) << "delivered without a lease";
  }
  Connection& to = connections.at(connection);
  EXPECT_LT(to.unwritten_bytes, driver_.limits.delivery_window_bytes) << "past the window";
  to.unwritten.push_back({message.queue, sequence, message.size});
  to.unwritten_bytes += message.size;
}

void HomeModel::check_delivered(Message& message, const broker::Message& found, bool redelivered) {
  EXPECT_EQ(message.state, State::ready)
      << "delivered though not ready: " << message.queue << ':' << message.sequence;
  EXPECT_EQ(found.body(), message.body);
  EXPECT_EQ(redelivered, message.redelivered) << message.queue << ':' << message.sequence;
  if (message.durable) {
    EXPECT_LE(message.sequence, driver_.store.stream(QueueId(message.queue)).ceiling)
        << "delivered above the written ceiling";
  }
  message.state = State::unacked;
  message.delivered_ever = true;
  std::uint64_t& highest = highest_delivered_[message.queue];
  highest = std::max(highest, message.sequence);
}

void HomeModel::got(std::uint64_t connection, std::uint64_t queue, const broker::Got& got) {
  if (got.queue_gone) {
    EXPECT_FALSE(queues.contains(queue));
    return;
  }
  ASSERT_TRUE(queues.contains(queue));
  auto& messages = queues.at(queue).messages;
  if (got.message == nullptr) {
    for (const auto& [sequence, message] : messages) {
      EXPECT_NE(message.state, State::ready)
          << "get found nothing, yet " << sequence << " is ready";
    }
    return;
  }
  const auto found = messages.find(got.position.sequence.value);
  ASSERT_TRUE(found != messages.end());
  check_delivered(found->second, *got.message, got.redelivered);
  found->second.consumer = 0;
  found->second.connection = connection;
  found->second.written = true;
}

// Dispatch is in the order of positions: what is still ready lies above all that was handed out.
void HomeModel::check_order() {
  for (const auto& [queue, highest] : std::exchange(highest_delivered_, {})) {
    if (!queues.contains(queue)) continue;
    for (const auto& [sequence, message] : queues.at(queue).messages) {
      if (sequence >= highest) break;
      EXPECT_NE(message.state, State::ready)
          << queue << ':' << sequence << " was passed over by " << highest;
    }
  }
}

void HomeModel::absorb_confirm(std::uint64_t connection, const broker::Confirm& confirm) {
  auto& unconfirmed = connections.at(connection).unconfirmed;
  for (std::uint64_t tag = confirm.first.value; tag <= confirm.last.value; ++tag) {
    const auto found = unconfirmed.find(tag);
    ASSERT_TRUE(found != unconfirmed.end()) << "confirmed twice or never published: " << tag;
    for (const auto& [queue_id, sequence] : found->second.messages) {
      const auto queue = queues.find(queue_id);
      if (queue == queues.end()) continue;
      Message& message = queue->second.messages.at(sequence);
      if (!message.durable || message.state == State::over) continue;
      EXPECT_TRUE(driver_.store.survives(QueueId(queue_id), Sequence(sequence)))
          << "confirmed before it was safe: " << queue_id << ':' << sequence;
      message.safe = true;
    }
    unconfirmed.erase(found);
  }
}

void HomeModel::check_counts() {
  std::size_t memory = 0;
  std::size_t beyond_shared = 0;
  for (const auto& [id, queue] : queues) {
    std::uint64_t ready = 0, unacked = 0, ready_bytes = 0, biggest = 0;
    for (const auto& [sequence, message] : queue.messages) {
      if (message.state == State::unacked) ++unacked;
      biggest = std::max<std::uint64_t>(biggest, message.size);
      if (message.state != State::ready) continue;
      ++ready;
      ready_bytes += message.size;
    }
    const auto stats = driver_.home->queue_stats(QueueId(id));
    ASSERT_TRUE(stats.has_value()) << id;
    EXPECT_EQ(stats->ready, ready) << "queue " << id;
    EXPECT_EQ(stats->unacked, unacked) << "queue " << id;
    EXPECT_EQ(stats->ready_bytes, ready_bytes) << "queue " << id;
    // The disk range and what was returned are read in portions of at least the minimum, and of
    // at least a message; so is one that arrives at an empty head.
    const std::size_t overdraft =
        2 * driver_.limits.min_queue_window_bytes + 3 * (biggest + broker::kMessageOverheadBytes);
    EXPECT_LE(stats->memory_bytes, driver_.limits.max_queue_window_bytes + overdraft)
        << "queue " << id;
    beyond_shared += driver_.limits.min_queue_window_bytes + overdraft;
    memory += stats->memory_bytes;
  }
  EXPECT_LE(memory, driver_.limits.home_window_bytes + beyond_shared);
}

void HomeModel::check_nothing_stands_still() {
  for (const auto& [id, consumer] : consumers) {
    const Queue& queue = queues.at(consumer.queue);
    // Behind a message of an open transaction it may have to wait.
    const auto first =
        std::find_if(queue.messages.begin(), queue.messages.end(), [](const auto& m) {
          return m.second.state == State::ready || m.second.state == State::prepared;
        });
    const bool waits = first != queue.messages.end() && first->second.state == State::ready;
    EXPECT_EQ(consumer.leased, 0) << "consumer " << id << " keeps a lease it cannot use";
    if (!waits || queue.single_active || consumer.paused) continue;
    if (!consumer.no_ack && consumer.prefetch > 0 && consumer.unacked >= consumer.prefetch)
      continue;
    const Connection& to = connections.at(consumer.connection);
    if (to.unwritten_bytes >= driver_.limits.delivery_window_bytes) continue;
    if (consumer.limited && !consumer.no_ack) {
      EXPECT_TRUE(consumer.wants_lease) << "consumer " << id << " waits for no lease";
      continue;
    }
    ADD_FAILURE() << "consumer " << id << " has credit, nothing happens, yet ready is "
                  << consumer.queue << ':' << first->first;
  }
}

void HomeModel::reset_to_store(bool clean) {
  consumers.clear();
  connections.clear();
  highest_delivered_.clear();
  std::erase_if(queues, [](const auto& q) { return !q.second.spec.durable; });
  for (auto& [id, queue] : queues) {
    const auto& stream = driver_.store.stream(QueueId(id));
    for (const auto& [sequence, stored] : stream.alive) {
      EXPECT_TRUE(queue.messages.contains(sequence)) << "unknown: " << id << ':' << sequence;
    }
    for (auto at = queue.messages.begin(); at != queue.messages.end();) {
      Message& message = at->second;
      const auto stored = stream.alive.find(at->first);
      const bool there = stored != stream.alive.end() && !stored->second.transient;
      const bool over = message.state == State::over;
      if (message.durable && (message.safe || clean) && !over && !message.transaction) {
        EXPECT_TRUE(there) << "lost: " << id << ':' << at->first;
      }
      if (clean && over) {
        EXPECT_FALSE(there) << "settled, yet back: " << id << ':' << at->first;
      }
      if (!there) {
        at = queue.messages.erase(at);
        continue;
      }
      if (message.delivered_ever) {
        EXPECT_LE(at->first, stream.ceiling) << "would not be redelivered: " << id;
      }
      message.state = State::ready;
      message.safe = true;
      message.transaction.reset();
      message.redelivered = at->first <= stream.ceiling;
      ++at;
    }
  }
}

}  // namespace stoat::testing
