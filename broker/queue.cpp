#include "broker/queue.hpp"

#include <algorithm>
#include <utility>

namespace stoat::broker {

namespace {

bool is_true(const wire::Table& arguments, std::string_view key) {
  const wire::FieldValue* value = arguments.find(key);
  const bool* flag = value != nullptr ? value->as_bool() : nullptr;
  return flag != nullptr && *flag;
}

std::uint64_t next_step(std::uint64_t step, const HomeLimits& limits) {
  return std::clamp(step * 2, limits.min_numbers_step, limits.max_numbers_step);
}

}  // namespace

// Ten thousand of them may stand idle.
static_assert(sizeof(Queue) <= 1024);

Queue::Queue(const QueueSpec& spec, QueueContext& context)
    : context_(context),
      id_(spec.id),
      durable_(spec.durable),
      auto_delete_(spec.auto_delete),
      share_(context.budget),
      ready_(stream(), context.persister, share_, context.limits),
      consumers_(spec.id, is_true(spec.arguments, "x-single-active-consumer")) {}

void Queue::recover(const store::RecoveredStream& found) {
  ready_.recover(found);
  next_ = std::max(found.next, Sequence(1));
  reserved_ = next_;
  highest_delivered_ = ceiling_asked_ = ceiling_written_ = found.delivered_ceiling;
}

QueueCounts Queue::counts() const {
  return {ready_.count(), unacked_.count(), consumers_.count(), true};
}

QueueStats Queue::stats() const {
  QueueStats stats;
  stats.id = id_;
  stats.ready = ready_.count();
  stats.unacked = unacked_.count();
  stats.consumers = consumers_.count();
  stats.ready_bytes = ready_.bytes();
  stats.memory_bytes = share_.used();
  stats.published = published_;
  stats.delivered = delivered_;
  stats.acked = acked_;
  stats.redelivered = redelivered_;
  return stats;
}

store::QueueNumbers Queue::exact_numbers() const {
  return {stream(), next_, highest_delivered_};
}

void Queue::mark_changed() {
  if (std::exchange(changed_, true)) return;
  context_.changed.push_back(this);
}

// --- numbers ---

Sequence Queue::next_sequence() {
  const Sequence sequence = next_;
  next_ = next_.next();
  if (durable_ && next_ > reserved_) {
    reserve_step_ = next_step(reserve_step_, context_.limits);
    reserved_ = Sequence(sequence.value + reserve_step_);
    write_numbers();
  }
  return sequence;
}

void Queue::write_numbers() {
  context_.persister.numbers(numbers_cursor_,
                             {stream(), std::max(reserved_, next_), ceiling_asked_});
}

// Before half of what is allowed is used up, so that deliveries hardly ever wait for the disk.
void Queue::extend_ceiling(Sequence sequence) {
  if (sequence.value + ceiling_step_ / 2 < ceiling_asked_.value) return;
  ceiling_step_ = next_step(ceiling_step_, context_.limits);
  ceiling_asked_ = std::max(ceiling_asked_, Sequence(sequence.value + ceiling_step_));
  write_numbers();
}

void Queue::numbers_written(const store::QueueNumbers& numbers) {
  ceiling_written_ = std::max(ceiling_written_, numbers.delivered_ceiling);
  if (!ready_.empty()) mark_changed();
}

// --- publishing ---

void Queue::publish(Publish& publish, Outbox& publisher, Persister::ConfirmSlot& confirm) {
  Persister& persister = context_.persister;
  const Sequence sequence = next_sequence();
  HeldMessage held;
  held.durable = durable_ && publish.message->persistent();
  held.size = stored_size(*publish.message);
  const bool in_memory = ready_.stays_in_memory(held.size);
  if (held.durable) {
    if (publish.tag.value != 0 && confirm == Persister::kNoConfirm) {
      confirm = persister.open_confirm(publisher.connection(), publish.channel, publish.tag);
    }
    held.put = persister.put(stream(), sequence, publish.message, false, publisher.connection(),
                             publish.tag.value != 0 ? confirm : Persister::kNoConfirm);
  } else if (!in_memory) {
    held.put = persister.put(stream(), sequence, publish.message, true, publisher.connection(),
                             Persister::kNoConfirm);
  } else {
    publisher.add_taken(held.size);
  }
  if (in_memory) {
    held.body = std::move(publish.message);
    ready_.push_head(sequence, std::move(held));
  } else {
    ready_.push_tail(sequence, held);
  }
  ++published_;
  ++context_.published;
  mark_changed();
}

void Queue::puts_committed() {
  ready_.committed();
  if (!ready_.empty()) mark_changed();
}

// --- consuming ---

ConsumeResult Queue::consume(const ConsumerSpec& spec, Outbox& outbox) {
  if (dying_) return ConsumeResult::no_queue;
  if (consumers_.has_exclusive() ||
      (spec.exclusive && (consumers_.single_active() || !consumers_.empty()))) {
    return ConsumeResult::exclusive_in_use;
  }
  consumers_.add(spec, *this, outbox);
  if (durable_) extend_ceiling(ready_.empty() ? next_ : ready_.lowest());
  mark_changed();
  return ConsumeResult::ok;
}

void Queue::cancel(Consumer& consumer) {
  consumers_.remove(consumer);
  mark_changed();  // another may be the active one now
  if (auto_delete_ && consumers_.empty() && !std::exchange(dying_, true)) {
    context_.unused.push_back(id_);
  }
}

void Queue::pause(Consumer& consumer, bool paused) {
  consumer.paused = paused;
  if (!paused) reconsider(consumer);
}

void Queue::set_channel_limited(Consumer& consumer, bool limited) {
  consumers_.set_channel_limited(consumer, limited);
  mark_changed();
}

void Queue::add_lease(Consumer& consumer, std::uint32_t count) {
  consumers_.add_lease(consumer, count);
  mark_changed();
}

void Queue::reconsider(Consumer& consumer) {
  consumers_.reconsider(consumer);
  if (!ready_.empty()) mark_changed();
}

// The next message, if it is in memory and may be delivered.
ReadyMessages::Front Queue::deliverable_front() {
  const ReadyMessages::Front front = ready_.front();
  if (!front || !front.message->durable || front.sequence <= ceiling_written_) return front;
  extend_ceiling(front.sequence);
  return {};
}

void Queue::dispatch() {
  changed_ = false;
  serve_gets();
  while (!consumers_.empty()) {
    const ReadyMessages::Front front = deliverable_front();
    if (!front) break;
    Consumer* consumer = consumer_for(front.sequence);
    if (consumer == nullptr) break;
    deliver(*consumer);
  }
  end_waiting_for_unreadable();
  consumers_.return_leases();
  read_ahead();
}

// Whoever asked to have it again, if it is there and can take it; else whose turn it is.
Consumer* Queue::consumer_for(Sequence sequence) {
  if (!takers_.empty()) {
    if (const auto it = takers_.find(sequence); it != takers_.end()) {
      Consumer* taker = consumers_.find_able(it->second.connection, it->second.consumer);
      if (taker != nullptr) return taker;
    }
  }
  return consumers_.next();
}

void Queue::deliver(Consumer& consumer) {
  ReadyMessages::Taken taken = ready_.pop_front();
  if (!takers_.empty()) takers_.erase(taken.sequence);
  HeldMessage& message = taken.message;
  MessagePtr body = hold(taken.sequence, message);
  consumer.outbox->deliver({consumer.channel,
                            consumer.id,
                            id_,
                            {0, taken.sequence},
                            std::move(body),
                            message.redelivered,
                            consumer.no_ack},
                           message.size);
  count_delivery(taken.sequence, message.durable, message.redelivered);
  unacked_.add(taken.sequence, {std::move(message), &consumer, false});
  consumers_.delivered(consumer);
}

// The body, for the delivery. The entry keeps it only while it is nowhere else, and not when
// unacknowledged messages would fill half the queue's window: then it is spilled.
MessagePtr Queue::hold(Sequence sequence, HeldMessage& message) {
  const std::size_t cost = WindowShare::cost(message.size);
  if (message.put == kOnlyInMemory) {
    const std::size_t window =
        std::min(share_.used() + share_.room(), context_.limits.max_queue_window_bytes);
    if (unacked_.memory_bytes() + cost <=
        std::max(window / 2, context_.limits.min_queue_window_bytes)) {
      return message.body;
    }
    message.put = context_.persister.put(stream(), sequence, message.body, true, Persister::kNobody,
                                         Persister::kNoConfirm);
  }
  share_.release(cost);
  return std::move(message.body);
}

void Queue::count_delivery(Sequence sequence, bool durable, bool redelivered) {
  highest_delivered_ = std::max(highest_delivered_, sequence);
  if (durable) extend_ceiling(sequence);
  ++delivered_;
  ++context_.delivered;
  if (redelivered) ++redelivered_;
}

std::optional<Got> Queue::get(std::function<void(Got)>& done) {
  if (gets_.empty()) {
    if (ready_.empty()) return Got{};
    if (deliverable_front()) return take_for_get();
  }
  gets_.push_back(std::move(done));
  read_ahead();
  return std::nullopt;
}

// REQUIRES: deliverable_front().
Got Queue::take_for_get() {
  ReadyMessages::Taken taken = ready_.pop_front();
  if (!takers_.empty()) takers_.erase(taken.sequence);
  HeldMessage& message = taken.message;
  Got got;
  got.message = hold(taken.sequence, message);
  got.position = {0, taken.sequence};
  got.redelivered = message.redelivered;
  got.messages_left = ready_.count();
  count_delivery(taken.sequence, message.durable, message.redelivered);
  unacked_.add(taken.sequence, {std::move(message), nullptr, false});
  return got;
}

void Queue::serve_gets() {
  while (!gets_.empty()) {
    Got got;
    if (!ready_.empty()) {
      if (!deliverable_front()) return;
      got = take_for_get();
    }
    context_.finished_gets.push_back({gets_.pop_front(), std::move(got)});
  }
}

void Queue::end_waiting_for_unreadable() {
  if (!ready_.unreadable() || ready_.front()) return;
  ready_.try_again();
  while (!gets_.empty()) {
    Got got;
    got.unreadable = true;
    context_.finished_gets.push_back({gets_.pop_front(), std::move(got)});
  }
  // An auto-delete queue stays: it still has its messages.
  consumers_.remove_all([](Consumer& consumer) {
    consumer.outbox->consumer_cancelled(consumer.channel, consumer.id);
  });
}

void Queue::read_ahead() {
  if (consumers_.empty() && gets_.empty()) return;
  const auto first_prepared =
      prepared_.empty() ? std::nullopt : std::optional<Sequence>(prepared_.first());
  if (const auto request = ready_.next_read(first_prepared)) {
    context_.read(stream(), ready_.read_generation(), *request);
  }
}

void Queue::loaded(std::uint32_t generation, store::ReadResult result) {
  if (generation != ready_.read_generation()) return;
  ready_.loaded(std::move(result));
  mark_changed();
}

void Queue::read_failed(std::uint32_t generation) {
  if (generation != ready_.read_generation()) return;
  ready_.read_failed();
  mark_changed();
}

}  // namespace stoat::broker
