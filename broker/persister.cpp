#include "broker/persister.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace stoat::broker {

namespace {

// Vectors of a batch larger than this are not kept for the next.
constexpr std::size_t kSparePuts = 16'384;

bool before(const store::Settle& a, const store::Settle& b) {
  return std::tie(a.stream.queue, a.stream.stream, a.first) <
         std::tie(b.stream.queue, b.stream.stream, b.first);
}

}  // namespace

Persister::Persister(Outboxes& outboxes, const HomeLimits& limits, Submit submit)
    : outboxes_(outboxes), limits_(limits), submit_(std::move(submit)) {
  batches_.emplace_back();
}

Persister::ConfirmSlot Persister::open_confirm(ConnectionId connection, ChannelRef channel,
                                               PublishTag tag) {
  auto& confirms = batches_.back().confirms;
  confirms.push_back({connection, channel, 0, tag});
  return static_cast<ConfirmSlot>(confirms.size() - 1);
}

PutNumber Persister::put(store::StreamId stream, Sequence sequence, MessagePtr message,
                         bool transient, ConnectionId publisher, ConfirmSlot confirm) {
  Batch& batch = batches_.back();
  if (confirm != kNoConfirm) ++batch.confirms[confirm].puts_left;
  ++batch.alive;
  batch.bytes += message->stored().size();
  batch.puts.push_back(
      {std::move(message), stream.queue, sequence, publisher, confirm, stream.stream, transient});
  return next_put_++;
}

Persister::Batch& Persister::batch_of(PutNumber number) {
  STOAT_ASSERT(number >= batches_.front().first && number < next_put_, number,
               batches_.front().first, next_put_);
  auto batch = batches_.rbegin();
  while (number < batch->first) ++batch;
  return *batch;
}

bool Persister::drop(PutNumber number) {
  if (number < first_waiting_) return false;
  Batch& batch = batch_of(number);
  PendingPut& put = batch.puts[number - batch.first];
  STOAT_ASSERT(put.message != nullptr, number, put.queue, put.sequence);
  const std::size_t size = put.message->stored().size();
  put.message.reset();
  --batch.alive;
  batch.bytes -= size;
  ++puts_dropped_;
  if (put.publisher != kNobody) {
    if (Outbox* outbox = outboxes_.find(put.publisher)) outbox->add_taken(size);
  }
  if (put.confirm == kNoConfirm) return true;
  PendingConfirm& confirm = batch.confirms[put.confirm];
  STOAT_ASSERT(confirm.puts_left > 0, confirm.tag);
  if (--confirm.puts_left == 0) {
    if (Outbox* outbox = outboxes_.find(confirm.connection)) {
      outbox->confirm(confirm.channel, confirm.tag);
    }
  }
  return true;
}

const MessagePtr& Persister::body(PutNumber number) {
  Batch& batch = batch_of(number);
  const MessagePtr& message = batch.puts[number - batch.first].message;
  STOAT_ASSERT(message != nullptr, number);
  return message;
}

void Persister::watch(QueueId queue, BatchNumber& watched) {
  const BatchNumber collecting = first_batch_ + batches_.size() - 1;
  if (watched == collecting) return;
  watched = collecting;
  batches_.back().watchers.push_back(queue);
}

void Persister::open_batch() {
  Batch& batch = batches_.emplace_back(std::exchange(spare_, Batch{}));
  batch.first = next_put_;
}

void Persister::seal_if_full() {
  if (batches_.back().bytes >= limits_.max_batch_bytes) open_batch();
}

void Persister::settle(Cursor& cursor, store::StreamId stream, Sequence first, Sequence last,
                       std::uint64_t count, std::uint64_t bytes, bool stored) {
  ranges_needed_ = ranges_needed_ || stored;
  if (cursor.round == round_) {
    store::Settle& range = ranges_[cursor.index];
    if (range.last.next() == first) {
      range.last = last;
      range.count += count;
      range.bytes += bytes;
      return;
    }
  }
  cursor = {round_, static_cast<std::uint32_t>(ranges_.size())};
  ranges_.push_back({stream, first, last, count, bytes});
}

void Persister::numbers(Cursor& cursor, const store::QueueNumbers& numbers) {
  if (cursor.round == numbers_round_) {
    numbers_[cursor.index] = numbers;
    return;
  }
  cursor = {numbers_round_, static_cast<std::uint32_t>(numbers_.size())};
  numbers_.push_back(numbers);
}

void Persister::forget_queue(QueueId queue) {
  if (std::erase_if(ranges_, [&](const auto& r) { return r.stream.queue == queue; }) > 0) {
    ++round_;
    ranges_needed_ = ranges_needed_ && !ranges_.empty();
  }
  if (std::erase_if(numbers_, [&](const auto& n) { return n.stream.queue == queue; }) > 0) {
    ++numbers_round_;
  }
}

bool Persister::has_work() const {
  if (ranges_needed_ || !numbers_.empty()) return true;
  for (std::size_t i = in_flight_; i < batches_.size(); ++i) {
    if (batches_[i].alive > 0) return true;
  }
  return false;
}

void Persister::submit_if_idle() {
  if (in_flight_ > 0 || failed_) return;
  clear_dropped();
  if (ranges_.size() > limits_.max_waiting_ranges) {
    merge_ranges();
    if (ranges_.size() > limits_.max_waiting_ranges) ranges_needed_ = true;
  }
  if (has_work()) submit_next();
}

void Persister::submit_everything() {
  while (!failed_ && has_work()) submit_next();
}

// Batches of which nothing is left to write need not go to the store; what they answer has been
// answered. REQUIRES: none in flight.
void Persister::clear_dropped() {
  while (batches_.front().alive == 0) {
    Batch& batch = batches_.front();
    if (batches_.size() > 1) {
      batches_.pop_front();
      ++first_batch_;
      continue;
    }
    batch.puts.clear();
    batch.confirms.clear();
    batch.watchers.clear();
    batch.first = next_put_;
    ++first_batch_;  // a new batch to whoever watched the old one
    break;
  }
  first_waiting_ = batches_.front().first;
}

void Persister::submit_next() {
  if (in_flight_ + 1 == batches_.size()) open_batch();
  Batch& batch = batches_[in_flight_];
  store::Batch out;
  out.puts.reserve(batch.alive);
  for (const PendingPut& put : batch.puts) {
    if (put.message == nullptr) continue;
    out.puts.push_back(
        {{put.queue, put.stream}, put.sequence, put.message->stored(), put.transient});
    if (!put.transient) out.sync = true;
  }
  STOAT_ASSERT(out.puts.size() == batch.alive, out.puts.size(), batch.alive);
  puts_written_ += batch.alive;
  take_ranges(out);
  if (!numbers_.empty()) {
    batch.numbers = numbers_;
    out.numbers = std::exchange(numbers_, {});
    out.sync = true;
    ++numbers_round_;
  }
  first_waiting_ = batches_[in_flight_ + 1].first;
  const BatchNumber number = first_batch_ + in_flight_;
  ++in_flight_;
  submit_(number, std::move(out));
}

void Persister::take_ranges(store::Batch& out) {
  if (ranges_.empty()) return;
  merge_ranges();
  out.settles = std::exchange(ranges_, {});
  ranges_needed_ = false;
  ++round_;
}

void Persister::merge_ranges() {
  if (ranges_.size() < 2) return;
  if (!std::is_sorted(ranges_.begin(), ranges_.end(), before)) {
    std::sort(ranges_.begin(), ranges_.end(), before);
  }
  std::size_t kept = 0;
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    store::Settle& last = ranges_[kept];
    const store::Settle& range = ranges_[i];
    if (last.stream == range.stream && range.first <= last.last.next()) {
      last.last = std::max(last.last, range.last);
      last.count += range.count;
      last.bytes += range.bytes;
    } else {
      ranges_[++kept] = range;
    }
  }
  ranges_.resize(kept + 1);
  ++round_;
}

void Persister::answer_puts(const Batch& batch) {
  for (const PendingPut& put : batch.puts) {
    if (put.message == nullptr || put.publisher == kNobody) continue;
    if (Outbox* outbox = outboxes_.find(put.publisher)) {
      outbox->add_taken(put.message->stored().size());
    }
  }
  for (const PendingConfirm& confirm : batch.confirms) {
    if (confirm.puts_left == 0) continue;
    if (Outbox* outbox = outboxes_.find(confirm.connection)) {
      outbox->confirm(confirm.channel, confirm.tag);
    }
  }
}

Persister::Completed Persister::completed(BatchNumber batch, bool failed) {
  failed_ = failed_ || failed;
  // What was in flight stays as it is: it is not safe, so nobody may be told otherwise.
  if (failed_) return {};
  STOAT_ASSERT(in_flight_ > 0 && batch == first_batch_, batch, first_batch_, in_flight_);
  if (done_.puts.capacity() <= kSparePuts) spare_ = std::move(done_);
  spare_.watchers.clear();
  spare_.numbers.clear();
  answer_puts(batches_.front());
  done_ = std::move(batches_.front());
  batches_.pop_front();
  ++first_batch_;
  --in_flight_;
  done_.puts.clear();
  done_.confirms.clear();
  done_.alive = 0;
  done_.bytes = 0;
  return {done_.watchers, done_.numbers};
}

}  // namespace stoat::broker
