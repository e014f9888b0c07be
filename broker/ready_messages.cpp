#include "broker/ready_messages.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "broker/log.hpp"

namespace stoat::broker {

namespace {

// Positions between two returned messages that one read may pass over.
constexpr std::uint64_t kMaxGapInRead = 64;

}  // namespace

ReadyMessages::ReadyMessages(store::StreamId stream, Persister& persister, WindowShare& share,
                             const HomeLimits& limits)
    : stream_(stream), persister_(persister), share_(share), limits_(limits) {}

void ReadyMessages::recover(const store::RecoveredStream& found) {
  redelivered_to_ = found.delivered_ceiling;
  if (found.count == 0) return;
  disk_first_ = found.first_unsettled;
  disk_end_ = found.next;
  disk_count_ = disk_durable_count_ = count_ = found.count;
  disk_bytes_ = disk_durable_bytes_ = bytes_ = found.bytes;
}

Sequence ReadyMessages::lowest() const {
  STOAT_ASSERT(!empty());
  Sequence lowest(~std::uint64_t{0});
  if (!returned_.empty()) lowest = std::min(lowest, returned_.first());
  if (!head_.empty()) lowest = std::min(lowest, head_.front().sequence);
  if (disk_count_ > 0) lowest = std::min(lowest, disk_first_);
  if (!tail_.empty()) lowest = std::min(lowest, tail_.front().sequence);
  return lowest;
}

bool ReadyMessages::stays_in_memory(std::uint32_t size) const {
  return disk_count_ == 0 && tail_.empty() &&
         (head_.empty() || WindowShare::cost(size) <= share_.room());
}

void ReadyMessages::push_head(Sequence sequence, HeldMessage message) {
  count_in(message.size);
  append_head(sequence, std::move(message));
}

void ReadyMessages::append_head(Sequence sequence, HeldMessage message) {
  STOAT_ASSERT(sequence >= passed_to_, stream_.queue, sequence, passed_to_);
  share_.charge(WindowShare::cost(message.size));
  passed_to_ = sequence.next();
  head_.push_back({sequence, std::move(message)});
}

void ReadyMessages::push_tail(Sequence sequence, const HeldMessage& message) {
  count_in(message.size);
  insert_tail({sequence, message.put, message.size, message.durable});
}

void ReadyMessages::insert_tail(TailMessage message) {
  if (!persister_.committed(message.put)) persister_.watch(stream_.queue, watched_);
  std::size_t at = tail_.size();
  while (at > 0 && message.sequence < tail_[at - 1].sequence) --at;
  tail_.insert(at, message);
}

void ReadyMessages::give_back(Sequence sequence, HeldMessage message) {
  count_in(message.size);
  passed_to_ = std::max(passed_to_, sequence.next());
  returned_.insert(sequence, std::move(message));
}

void ReadyMessages::release(Sequence sequence, HeldMessage message) {
  if (sequence < (disk_count_ > 0 ? disk_first_ : passed_to_)) {
    // Later ones have been handed out already, or are about to be.
    if (message.put == kOnlyInMemory && WindowShare::cost(message.size) <= share_.room()) {
      share_.charge(WindowShare::cost(message.size));
    } else {
      spill(sequence, message);
    }
    return give_back(sequence, std::move(message));
  }
  if (stays_in_memory(message.size)) return push_head(sequence, std::move(message));
  spill(sequence, message);
  push_tail(sequence, message);
  committed();
}

void ReadyMessages::spill(Sequence sequence, HeldMessage& message) {
  const MessagePtr body = std::move(message.body);
  if (message.put != kOnlyInMemory) return;
  message.put =
      persister_.put(stream_, sequence, body, true, Persister::kNobody, Persister::kNoConfirm);
}

ReadyMessages::Front ReadyMessages::front() {
  if (returned_is_next()) {
    const HeldMessage& message = returned_.front();
    if (message.body == nullptr && persister_.committed(message.put)) return {};
    return {returned_.first(), &message};
  }
  if (head_.empty()) pull_tail();
  if (head_.empty()) return {};
  return {head_.front().sequence, &head_.front().message};
}

// With nothing on disk before them, messages that the persister still holds need not go there and
// back.
void ReadyMessages::pull_tail() {
  if (tail_.empty()) return;
  committed();
  if (disk_count_ > 0) return;
  while (!tail_.empty() && !persister_.committed(tail_.front().put)) {
    if (!head_.empty() && WindowShare::cost(tail_.front().size) > share_.room()) return;
    const TailMessage from = tail_.pop_front();
    append_head(from.sequence,
                {persister_.body(from.put), from.put, from.size, from.durable, false});
  }
}

ReadyMessages::Taken ReadyMessages::pop_front() {
  Taken taken;
  if (returned_is_next()) {
    taken.sequence = returned_.first();
    taken.message = returned_.take(taken.sequence);
    if (taken.message.body == nullptr) {
      taken.message.body = persister_.body(taken.message.put);
      share_.charge(WindowShare::cost(taken.message.size));
    }
  } else {
    HeadMessage front = head_.pop_front();
    taken = {front.sequence, std::move(front.message)};
  }
  STOAT_ASSERT(taken.message.body != nullptr && count_ > 0, stream_.queue, taken.sequence, count_);
  --count_;
  bytes_ -= taken.message.size;
  return taken;
}

void ReadyMessages::committed() {
  while (!tail_.empty() && persister_.committed(tail_.front().put)) {
    const TailMessage from = tail_.pop_front();
    const bool first = disk_count_ == 0;
    STOAT_ASSERT(first || from.sequence >= disk_first_, from.sequence, disk_first_);
    if (first) disk_first_ = from.sequence;
    disk_end_ = first ? from.sequence.next() : std::max(disk_end_, from.sequence.next());
    ++disk_count_;
    disk_bytes_ += from.size;
    if (from.durable) {
      ++disk_durable_count_;
      disk_durable_bytes_ += from.size;
    }
  }
}

std::optional<ReadyMessages::ReadRequest> ReadyMessages::next_read(
    std::optional<Sequence> first_prepared) {
  if (reading_ != Reading::nothing || unreadable_) return std::nullopt;
  if (returned_is_next() && returned_.front().body == nullptr &&
      persister_.committed(returned_.front().put)) {
    read_ = read_returned();
    reading_ = Reading::returned;
    return read_;
  }
  auto request = read_disk_range(first_prepared);
  if (!request) return std::nullopt;
  read_ = *request;
  reading_ = Reading::disk_range;
  return read_;
}

// What is read costs memory beside its bytes, so small messages are limited by their number.
ReadyMessages::ReadRequest ReadyMessages::read_request(Sequence from, Sequence end,
                                                       std::uint64_t bytes,
                                                       std::uint64_t messages) const {
  const std::size_t room =
      std::min(limits_.read_bytes, std::max(share_.room(), limits_.min_queue_window_bytes));
  const std::size_t average = WindowShare::cost(static_cast<std::size_t>(bytes / messages));
  ReadRequest request;
  request.from = from;
  request.limit.end = end;
  request.limit.max_messages = std::clamp(room / average, std::size_t{1}, limits_.read_messages);
  request.limit.max_bytes =
      room - std::min(room - 1, request.limit.max_messages * WindowShare::cost(0));
  return request;
}

ReadyMessages::ReadRequest ReadyMessages::read_returned() {
  const Sequence from = returned_.first();
  // What an earlier read brought and others have returned in front of would pile up.
  returned_.for_each(from, [&](Sequence at, HeldMessage& message) {
    if (at > returned_loaded_to_) return false;
    if (message.body != nullptr && message.put != kOnlyInMemory) {
      message.body = nullptr;
      share_.release(WindowShare::cost(message.size));
    }
    return true;
  });
  Sequence last = from;
  std::size_t messages = 0;
  returned_.for_each(from, [&](Sequence at, const HeldMessage& message) {
    if (at.value - last.value > kMaxGapInRead || messages == limits_.read_messages) return false;
    if (message.body == nullptr) {
      last = at;
      ++messages;
    }
    return true;
  });
  returned_loaded_to_ = last;
  return read_request(from, last.next(), bytes_, count_);
}

std::optional<ReadyMessages::ReadRequest> ReadyMessages::read_disk_range(
    std::optional<Sequence> first_prepared) {
  if (disk_count_ == 0) return std::nullopt;
  const std::size_t room = share_.room();
  if (!head_.empty() && room < share_.used() && room < limits_.read_bytes) return std::nullopt;
  Sequence end = disk_end_;
  if (first_prepared) end = std::min(end, *first_prepared);
  if (!tail_.empty()) end = std::min(end, tail_.front().sequence);
  if (end <= disk_first_) return std::nullopt;
  return read_request(disk_first_, end, disk_bytes_, disk_count_);
}

void ReadyMessages::loaded(store::ReadResult result) {
  const Reading reading = std::exchange(reading_, Reading::nothing);
  STOAT_ASSERT(reading != Reading::nothing, stream_.queue);
  if (reading == Reading::returned) {
    load_returned(result);
  } else {
    load_disk_range(result);
  }
}

void ReadyMessages::read_failed() {
  STOAT_ASSERT(reading_ != Reading::nothing, stream_.queue);
  reading_ = Reading::nothing;
  unreadable_ = true;
}

void ReadyMessages::load_returned(store::ReadResult& result) {
  for (store::StoredMessage& stored : result.messages) {
    HeldMessage* message = returned_.find(stored.sequence);
    if (message == nullptr || message->body != nullptr) continue;
    message->body = Message::from_stored(stored.bytes);
    if (message->body != nullptr) share_.charge(WindowShare::cost(message->size));
  }
  // Its put was committed before the read was asked for, so it was to be answered.
  HeldMessage* asked = returned_.find(read_.from);
  if (asked != nullptr && asked->body == nullptr) {
    const HeldMessage missing = returned_.take(read_.from);
    --count_;
    bytes_ -= missing.size;
    forget_missing(read_.from);
  }
}

void ReadyMessages::load_disk_range(store::ReadResult& result) {
  for (store::StoredMessage& stored : result.messages) {
    STOAT_ASSERT(stored.sequence >= disk_first_ && stored.sequence < read_.limit.end, stream_.queue,
                 stored.sequence, disk_first_, read_.limit.end);
    const auto size = static_cast<std::uint32_t>(stored.bytes.size());
    STOAT_ASSERT(disk_count_ > 0 && disk_bytes_ >= size, stream_.queue, stored.sequence);
    --disk_count_;
    disk_bytes_ -= size;
    if (!stored.transient) {
      --disk_durable_count_;
      disk_durable_bytes_ -= size;
    }
    MessagePtr body = Message::from_stored(stored.bytes);
    if (body == nullptr) {
      --count_;
      bytes_ -= size;
      forget_missing(stored.sequence);
      continue;
    }
    append_head(stored.sequence, {std::move(body), kOnDisk, size, !stored.transient,
                                  stored.sequence <= redelivered_to_});
  }
  disk_first_ = result.end ? read_.limit.end : result.resume_from;
  if (disk_first_ < disk_end_ || disk_count_ == 0) return;
  // The store's record and its messages disagree; the messages are what counts.
  log::error("queue " + std::to_string(stream_.queue.value) + ": " + std::to_string(disk_count_) +
             " messages fewer in the store than were counted");
  count_ -= disk_count_;
  bytes_ -= disk_bytes_;
  disk_count_ = disk_bytes_ = disk_durable_count_ = disk_durable_bytes_ = 0;
}

// A stored message that cannot be had back. It is left in the store as it is, for whoever looks.
void ReadyMessages::forget_missing(Sequence sequence) {
  log::error("queue " + std::to_string(stream_.queue.value) + ": message " +
             std::to_string(sequence.value) + " is missing in the store or cannot be read");
}

void ReadyMessages::drop_put(PutNumber put, bool durable, std::uint32_t size, Purged& purged) {
  if (put == kOnlyInMemory || persister_.drop(put)) return;
  purged.stored = true;
  if (!durable) return;
  ++purged.count;
  purged.bytes += size;
}

ReadyMessages::Purged ReadyMessages::purge(Sequence next) {
  // What a transaction releases among the purged ones is not to share a read with them: the store
  // may not know yet that they are over.
  passed_to_ = std::max(passed_to_, next);
  Purged purged;
  if (empty()) return purged;
  purged.messages = count_;
  purged.lowest = lowest();
  auto drop = [&](const HeldMessage& message) {
    drop_put(message.put, message.durable, message.size, purged);
    if (message.body != nullptr) share_.release(WindowShare::cost(message.size));
  };
  returned_.for_each(Sequence(0), [&](Sequence, const HeldMessage& message) {
    drop(message);
    return true;
  });
  returned_.clear();
  for (std::size_t i = 0; i < head_.size(); ++i) drop(head_[i].message);
  head_.clear();
  for (std::size_t i = 0; i < tail_.size(); ++i) {
    drop_put(tail_[i].put, tail_[i].durable, tail_[i].size, purged);
  }
  tail_.clear();
  purged.stored = purged.stored || disk_count_ > 0;
  purged.count += disk_durable_count_;
  purged.bytes += disk_durable_bytes_;
  disk_count_ = disk_bytes_ = disk_durable_count_ = disk_durable_bytes_ = 0;
  count_ = bytes_ = 0;
  reading_ = Reading::nothing;
  unreadable_ = false;
  ++read_generation_;
  return purged;
}

}  // namespace stoat::broker
