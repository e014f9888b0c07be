// What ends or returns a queue's messages: settles, purge, deletion, and transactions.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "broker/queue.hpp"

namespace stoat::broker {

namespace {

bool gives_back(SettleKind kind) {
  return kind == SettleKind::requeue || kind == SettleKind::redeliver ||
         kind == SettleKind::undelivered;
}

}  // namespace

// Settled positions on their way to the persister, as runs.
class Queue::SettledRun {
 public:
  explicit SettledRun(Queue& queue) : queue_(queue) {}
  ~SettledRun() { flush(); }
  SettledRun(const SettledRun&) = delete;
  SettledRun& operator=(const SettledRun&) = delete;

  void add(Sequence at, bool in_store, const HeldMessage& message) {
    if (!queue_.durable_ && !in_store) return;  // the store never hears of it
    if (empty_ || last_.next() != at) {
      flush();
      first_ = at;
      empty_ = false;
    }
    last_ = at;
    in_store_ = in_store_ || in_store;
    if (in_store && message.durable) {
      ++count_;
      bytes_ += message.size;
    }
  }

 private:
  void flush() {
    if (empty_) return;
    queue_.context_.persister.settle(queue_.settle_cursor_, queue_.stream(), first_, last_, count_,
                                     bytes_, in_store_);
    in_store_ = false;
    count_ = bytes_ = 0;
  }

  Queue& queue_;
  bool empty_ = true;
  bool in_store_ = false;
  Sequence first_;
  Sequence last_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

// --- settling ---

void Queue::settle(const Settle& settle) {
  if (settle.stream != 0) return;
  if (gives_back(settle.kind)) {
    unacked_.take_range(settle.first, settle.last, [&](Sequence at, UnackedMessage&& entry) {
      give_back(at, entry, settle.kind);
    });
    return;
  }
  SettledRun run(*this);
  unacked_.take_range(settle.first, settle.last, [&](Sequence at, UnackedMessage&& entry) {
    run.add(at, finish(entry), entry.message);
  });
}

void Queue::give_back(Sequence sequence, UnackedMessage& entry, SettleKind kind) {
  if (kind != SettleKind::undelivered) entry.message.redelivered = true;
  if (kind == SettleKind::redeliver && entry.consumer != nullptr &&
      entry.consumer->outbox != nullptr) {
    takers_[sequence] = {entry.consumer->outbox->connection(), entry.consumer->id};
  }
  leave(entry);
  ready_.give_back(sequence, std::move(entry.message));
  mark_changed();
}

// A message's end: acknowledged, sent, or rejected (a queue with a dead-letter exchange republishes
// it here instead). True when the store has it.
bool Queue::finish(UnackedMessage& entry) {
  leave(entry);
  ++acked_;
  ++context_.acked;
  const HeldMessage& message = entry.message;
  if (message.body != nullptr) share_.release(WindowShare::cost(message.size));
  return message.put != kOnlyInMemory && !context_.persister.drop(message.put);
}

// Its consumer has that much credit again.
void Queue::leave(UnackedMessage& entry) {
  if (entry.consumer == nullptr) return;
  consumers_.settled(*std::exchange(entry.consumer, nullptr));
  if (!ready_.empty()) mark_changed();
}

// --- maintenance ---

std::uint64_t Queue::purge() {
  takers_.clear();
  const ReadyMessages::Purged purged = ready_.purge(next_);
  if (purged.messages > 0 && (durable_ || purged.stored)) settle_gaps(purged);
  if (!gets_.empty()) mark_changed();
  return purged.messages;
}

// Settles everything from the lowest purged position on, around what is unacknowledged or prepared.
void Queue::settle_gaps(const ReadyMessages::Purged& purged) {
  std::vector<Sequence> held;
  unacked_.for_each(purged.lowest, [&](Sequence at, const UnackedMessage&) {
    held.push_back(at);
    return true;
  });
  prepared_.for_each(purged.lowest, [&](Sequence at, const MessagePtr&) {
    held.push_back(at);
    return true;
  });
  std::sort(held.begin(), held.end());
  held.push_back(next_);
  std::uint64_t count = purged.count;
  std::uint64_t bytes = purged.bytes;
  Sequence first = purged.lowest;
  for (const Sequence at : held) {
    if (first < at) {
      context_.persister.settle(settle_cursor_, stream(), first, Sequence(at.value - 1),
                                std::exchange(count, 0), std::exchange(bytes, 0), purged.stored);
    }
    first = at.next();
  }
}

std::uint64_t Queue::remove(std::optional<ConnectionId> except_connection) {
  consumers_.remove_all([&](Consumer& consumer) {
    if (consumer.outbox->connection() == except_connection) return;
    consumer.outbox->consumer_cancelled(consumer.channel, consumer.id);
  });
  const std::uint64_t messages = ready_.purge(next_).messages;
  unacked_.for_each(Sequence(0), [&](Sequence, const UnackedMessage& entry) {
    if (entry.message.put != kOnlyInMemory) context_.persister.drop(entry.message.put);
    return true;
  });
  while (!gets_.empty()) {
    Got gone;
    gone.queue_gone = true;
    context_.finished_gets.push_back({gets_.pop_front(), std::move(gone)});
  }
  context_.persister.forget_queue(id_);
  std::erase(context_.changed, this);
  return messages;
}

// --- transactions ---

Sequence Queue::prepare_publish(MessagePtr message, store::Batch& batch) {
  const Sequence sequence = next_sequence();
  if (durable_ && message->persistent()) {
    batch.puts.push_back({stream(), sequence, message->stored(), false});
    batch.sync = true;
  }
  prepared_.insert(sequence, std::move(message));
  return sequence;
}

bool Queue::prepare_settle(const Settle& settle, store::Batch& batch) {
  if (settle.stream != 0) return false;
  const bool final = !gives_back(settle.kind);
  bool put_waits = false;
  unacked_.hold_range(settle.first, settle.last, [&](Sequence at, const UnackedMessage& entry) {
    const HeldMessage& message = entry.message;
    if (!final || !message.durable) return;
    put_waits = put_waits || !context_.persister.submitted(message.put);
    batch.sync = true;
    if (!batch.settles.empty()) {
      store::Settle& last = batch.settles.back();
      if (last.stream == stream() && last.last.next() == at) {
        last.last = at;
        ++last.count;
        last.bytes += message.size;
        return;
      }
    }
    batch.settles.push_back({stream(), at, at, 1, message.size});
  });
  return put_waits;
}

void Queue::release_publish(Sequence sequence) {
  if (!prepared_.contains(sequence)) return;
  HeldMessage held;
  held.body = prepared_.take(sequence);
  held.size = stored_size(*held.body);
  held.durable = durable_ && held.body->persistent();
  held.put = held.durable ? kOnDisk : kOnlyInMemory;
  ready_.release(sequence, std::move(held));
  ++published_;
  ++context_.published;
  mark_changed();
}

void Queue::release_settle(const Settle& settle) {
  if (settle.stream != 0) return;
  if (gives_back(settle.kind)) {
    unacked_.take_held_range(settle.first, settle.last, [&](Sequence at, UnackedMessage&& entry) {
      give_back(at, entry, settle.kind);
    });
    return;
  }
  SettledRun run(*this);
  unacked_.take_held_range(settle.first, settle.last, [&](Sequence at, UnackedMessage&& entry) {
    // The transaction's batch settled the durable ones.
    const bool in_store = finish(entry) && !entry.message.durable;
    run.add(at, in_store, entry.message);
  });
}

}  // namespace stoat::broker
