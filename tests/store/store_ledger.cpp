#include "tests/store/store_ledger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "tests/store/store_fixture.hpp"

namespace stoat::store::testing {
namespace {

constexpr std::uint64_t kReserved = 500;
constexpr std::size_t kQueues = 4;
constexpr std::uint64_t kSmallestShared = 4200;  // the store copies smaller ones
constexpr const char* kTopologyKeys[] = {"exchange//a", "queue//b"};

}  // namespace

std::string StoreLedger::bytes_of(StreamId id, std::uint64_t sequence) const {
  std::uint64_t size = (id.queue.value * 131 + sequence * 977) % 1200;
  std::string name = std::to_string(id.queue.value) + "/" + std::to_string(id.stream) + "/" +
                     std::to_string(sequence) + " ";
  if (const auto shared = shared_.find({id.queue, sequence}); shared != shared_.end()) {
    size = kSmallestShared + shared->second * 977 % 4000;
    name = "shared " + std::to_string(shared->second) + " ";
  }
  std::string bytes;
  while (bytes.size() < size) bytes += name;
  bytes.resize(size);
  return bytes;
}

void StoreLedger::work(Store& store, int steps) {
  while (streams_.size() < kQueues && !has_failed()) add_queue(store);
  for (auto& stream : streams_) reserve(store, *stream);
  for (int step = 0; step < steps; ++step) {
    if (has_failed()) return;
    const std::uint64_t what = random_() % 100;
    if (what < 40) {
      put_some(store);
    } else if (what < 50) {
      fan_out(store);
    } else if (what < 80) {
      settle_some(store);
    } else if (what < 88) {
      move_one(store);
    } else if (what < 96) {
      change_topology(store);
    } else if (what < 98) {
      delete_queue(store);
    } else {
      add_queue(store);
    }
  }
  // Whatever is still under way is decided when this has an answer.
  commit(store, Batch{});
}

bool StoreLedger::has_failed() const {
  std::lock_guard lock(mutex_);
  return failed_;
}

void StoreLedger::submit(Store& store, Batch batch, bool wait, std::function<void()> promised) {
  // The bytes have to live until the completion: the batch's owner keeps them.
  auto owned = std::make_shared<std::vector<std::string>>();
  owned->reserve(batch.puts.size());
  std::map<std::uint64_t, std::string_view> shared_bytes;
  for (Put& put : batch.puts) {
    const auto shared = shared_.find({put.stream.queue, put.sequence.value});
    if (shared != shared_.end() && shared_bytes.contains(shared->second)) {
      put.bytes = shared_bytes[shared->second];
      continue;
    }
    owned->push_back(bytes_of(put.stream, put.sequence.value));
    put.bytes = owned->back();
    if (shared != shared_.end()) shared_bytes[shared->second] = put.bytes;
  }
  const bool sync = batch.sync;
  auto done = std::make_shared<std::promise<void>>();
  store.submit(std::move(batch), [this, owned, done, sync, promised](const auto& error) {
    {
      std::lock_guard lock(mutex_);
      if (error) failed_ = true;
      if (!error && sync) promised();
    }
    done->set_value();
  });
  if (wait) done->get_future().wait();
}

StoreLedger::Stream* StoreLedger::any_stream() {
  std::lock_guard lock(mutex_);
  if (streams_.empty()) return nullptr;
  Stream* stream = streams_[random_() % streams_.size()].get();
  return stream->deleted == Known::no ? stream : nullptr;
}

void StoreLedger::add_queue(Store& store) {
  const QueueId queue{next_queue_id_++};
  {
    std::lock_guard lock(mutex_);
    auto stream = std::make_unique<Stream>();
    stream->id = StreamId{queue, static_cast<std::uint8_t>(queue.value % 3)};
    streams_.push_back(std::move(stream));
  }
  Stream* stream = streams_.back().get();
  if (commit(store, created(queue))) {
    std::lock_guard lock(mutex_);
    failed_ = true;
    return;
  }
  reserve(store, *stream);
}

void StoreLedger::reserve(Store& store, Stream& stream) {
  {
    std::lock_guard lock(mutex_);
    if (stream.deleted != Known::no) return;
  }
  Batch batch;
  const std::uint64_t reserved = stream.next + kReserved;
  const std::uint64_t ceiling = stream.next + kReserved / 2;
  batch.numbers.push_back({stream.id, Sequence{reserved}, Sequence{ceiling}});
  batch.sync = true;
  submit(store, std::move(batch), true, [&stream, reserved, ceiling] {
    stream.reserved = reserved;
    stream.ceiling = ceiling;
  });
}

void StoreLedger::put_into(Batch& batch, Stream& stream, std::uint64_t sequence) {
  batch.puts.push_back(put(stream.id, sequence, {}));
  std::lock_guard lock(mutex_);
  stream.messages[sequence] = Message{};
}

void StoreLedger::put_some(Store& store) {
  Stream* stream = any_stream();
  if (!stream || stream->next + 20 >= stream->reserved) return;
  Batch batch;
  batch.sync = random_() % 10 < 7;
  const std::uint64_t first = stream->next;
  const std::uint64_t last = first + random_() % 20;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    put_into(batch, *stream, sequence);
  }
  stream->next = last + 1;
  submit(store, std::move(batch), random_() % 4 == 0, [stream, first, last] {
    for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
      stream->messages[sequence].put = Known::promised;
    }
  });
}

// One large message to some of the queues.
void StoreLedger::fan_out(Store& store) {
  Batch batch;
  batch.sync = random_() % 10 < 7;
  const std::uint64_t shared = ++last_shared_;
  std::vector<std::pair<Stream*, std::uint64_t>> put;
  for (auto& stream : streams_) {
    {
      std::lock_guard lock(mutex_);
      if (stream->deleted != Known::no) continue;
    }
    if (random_() % 3 == 0 || stream->next + 1 >= stream->reserved) continue;
    const std::uint64_t sequence = stream->next++;
    shared_[{stream->id.queue, sequence}] = shared;
    put_into(batch, *stream, sequence);
    put.emplace_back(stream.get(), sequence);
  }
  submit(store, std::move(batch), random_() % 4 == 0, [put] {
    for (const auto& [stream, sequence] : put) stream->messages[sequence].put = Known::promised;
  });
}

std::uint64_t StoreLedger::settled_bytes(const Stream& stream, std::uint64_t first,
                                         std::uint64_t last) const {
  std::uint64_t bytes = 0;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    bytes += bytes_of(stream.id, sequence).size();
  }
  return bytes;
}

void StoreLedger::settle_some(Store& store) {
  Stream* stream = any_stream();
  if (!stream) return;
  Batch batch;
  batch.sync = random_() % 10 < 3;
  std::vector<std::uint64_t> settled;
  {
    std::lock_guard lock(mutex_);
    for (auto& [sequence, message] : stream->messages) {
      if (message.settled != Known::no) continue;
      const bool continues = !settled.empty() && settled.back() + 1 == sequence;
      if (random_() % 10 < (continues ? 8u : 3u)) {
        message.settled = Known::submitted;
        settled.push_back(sequence);
      }
      if (settled.size() >= 30) break;
    }
  }
  for (std::size_t i = 0; i < settled.size();) {
    std::size_t end = i + 1;
    while (end < settled.size() && settled[end] == settled[end - 1] + 1) ++end;
    batch.settles.push_back(settle(stream->id, settled[i], settled[end - 1], end - i,
                                   settled_bytes(*stream, settled[i], settled[end - 1])));
    i = end;
  }
  submit(store, std::move(batch), random_() % 4 == 0, [stream, settled] {
    for (auto sequence : settled) stream->messages[sequence].settled = Known::promised;
  });
}

// As dead-lettering does: settled here and put there by one batch.
void StoreLedger::move_one(Store& store) {
  const std::size_t index = random_() % streams_.size();
  Stream& from = *streams_[index];
  Stream* to = any_stream();
  if (!to || to == &from || to->next + 1 >= to->reserved) return;
  std::uint64_t sequence = 0;
  {
    std::lock_guard lock(mutex_);
    if (from.deleted != Known::no) return;
    for (auto& [number, message] : from.messages) {
      if (message.settled != Known::no || message.put != Known::promised) continue;
      message.settled = Known::submitted;
      sequence = number;
      break;
    }
  }
  if (sequence == 0) return;
  Batch batch;
  batch.sync = true;
  batch.settles.push_back(
      settle(from.id, sequence, sequence, 1, settled_bytes(from, sequence, sequence)));
  const std::uint64_t moved = to->next++;
  put_into(batch, *to, moved);
  {
    std::lock_guard lock(mutex_);
    to->messages[moved].instead_of = {index, sequence};
  }
  submit(store, std::move(batch), false, [&from, to, sequence, moved] {
    from.messages[sequence].settled = Known::promised;
    to->messages[moved].put = Known::promised;
  });
}

void StoreLedger::change_topology(Store& store) {
  const std::uint64_t version = ++version_submitted_;
  TopologyChange change;
  for (const char* key : kTopologyKeys) change.puts.emplace_back(key, std::to_string(version));
  change.puts.emplace_back("version/" + std::to_string(version), "{}");
  if (version > 1) change.erases.push_back("version/" + std::to_string(version - 1));
  store.save_topology(std::move(change), [this, version](const auto& error) {
    std::lock_guard lock(mutex_);
    if (error) {
      failed_ = true;
    } else {
      version_promised_ = version;
    }
  });
}

void StoreLedger::delete_queue(Store& store) {
  Stream* stream = any_stream();
  if (!stream) return;
  {
    std::lock_guard lock(mutex_);
    stream->deleted = Known::submitted;
  }
  store.save_topology(deleted(stream->id.queue), [this, stream](const auto& error) {
    std::lock_guard lock(mutex_);
    if (error) {
      failed_ = true;
    } else {
      stream->deleted = Known::promised;
    }
  });
}

void StoreLedger::verify(Store& store, const Recovered& recovered) {
  EXPECT_GE(recovered.next_queue_id.value, 1u);
  for (const auto& found : recovered.streams) {
    EXPECT_TRUE(std::any_of(streams_.begin(), streams_.end(),
                            [&](const auto& stream) { return stream->id == found.stream; }) ||
                (found.stream.stream == 0 && found.count == 0))
        << "a stream that was never used: " << found.stream.queue;
    EXPECT_LT(found.stream.queue, recovered.next_queue_id);
  }
  for (auto& stream : streams_) verify_stream(store, *stream, find(recovered, stream->id));
  for (auto& stream : streams_) verify_moves(*stream);
  verify_topology(recovered);

  // From here on what was found is what is promised.
  std::erase_if(streams_, [&](const auto& stream) { return !find(recovered, stream->id); });
  for (auto& stream : streams_) {
    for (auto& [sequence, message] : stream->messages) message.instead_of.reset();
    std::erase_if(stream->messages,
                  [](const auto& entry) { return entry.second.put == Known::no; });
    stream->next = find(recovered, stream->id)->next.value;
    stream->deleted = Known::no;
  }
  next_queue_id_ = std::max(next_queue_id_, recovered.next_queue_id.value);
  failed_ = false;
}

void StoreLedger::verify_stream(Store& store, Stream& stream, const RecoveredStream* found) {
  SCOPED_TRACE(::testing::Message() << "queue " << stream.id.queue);
  if (!found) {
    const bool promised =
        stream.reserved > 1 && stream.deleted == Known::no;  // the reserving was waited for
    EXPECT_FALSE(promised) << "the stream is gone";
    for (auto& [sequence, message] : stream.messages) message.put = Known::no;
    return;
  }
  EXPECT_NE(stream.deleted, Known::promised) << "the queue was deleted";
  EXPECT_GE(found->next.value, stream.reserved);
  EXPECT_GE(found->delivered_ceiling.value, stream.ceiling);

  const auto present = alive(store, stream.id, found->next.value + 1000);
  EXPECT_EQ(found->count, present.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    EXPECT_TRUE(stream.messages.contains(present[i])) << present[i] << " was never put";
    if (i > 0) {
      EXPECT_LT(present[i - 1], present[i]);
    }
    EXPECT_GE(present[i], found->first_unsettled.value);
    EXPECT_LT(present[i], found->next.value);
    bytes += bytes_of(stream.id, present[i]).size();
  }
  EXPECT_EQ(found->bytes, bytes);
  if (!present.empty()) {
    EXPECT_EQ(found->first_unsettled.value, present.front());
    ReadLimit one{Sequence{present.back() + 1}, 1, 1};
    EXPECT_EQ(read(store, stream.id, present.back(), one).messages.at(0).bytes,
              bytes_of(stream.id, present.back()));
  }

  for (auto& [sequence, message] : stream.messages) {
    const bool is_there = std::binary_search(present.begin(), present.end(), sequence);
    if (is_there) {
      EXPECT_NE(message.settled, Known::promised) << sequence << " was settled for good";
      message = Message{Known::promised, Known::no, message.instead_of};
    } else {
      EXPECT_FALSE(message.put == Known::promised && message.settled == Known::no)
          << sequence << " was confirmed";
      message.put = Known::no;
    }
  }
}

void StoreLedger::verify_moves(const Stream& stream) const {
  for (const auto& [sequence, message] : stream.messages) {
    // One whose own settling was under way may be gone for that reason.
    if (!message.instead_of || message.settled != Known::no) continue;
    const auto& [index, moved] = *message.instead_of;
    const Stream& from = *streams_[index];
    if (from.deleted != Known::no || stream.deleted != Known::no) continue;
    const bool here = message.put != Known::no;
    const bool there = from.messages.at(moved).put != Known::no;
    EXPECT_NE(here, there) << "a message moved from " << from.id.queue << " to " << stream.id.queue
                           << " is " << (here ? "doubled" : "lost");
  }
}

void StoreLedger::verify_topology(const Recovered& recovered) {
  std::map<std::string, std::string> topology(recovered.topology.begin(), recovered.topology.end());
  const std::string version = topology[kTopologyKeys[0]];
  EXPECT_EQ(topology[kTopologyKeys[1]], version);
  const std::uint64_t number = version.empty() ? 0 : std::stoull(version);
  EXPECT_GE(number, version_promised_);
  EXPECT_LE(number, version_submitted_);
  for (const auto& [key, json] : topology) {
    if (key.starts_with("version/")) {
      EXPECT_EQ(key, "version/" + version);
    }
  }
  version_promised_ = version_submitted_ = number;
}

std::vector<QueueNumbers> StoreLedger::exact_numbers() {
  std::vector<QueueNumbers> numbers;
  for (const auto& stream : streams_) {
    if (stream->deleted != Known::no) continue;
    stream->reserved = stream->next;
    stream->ceiling = stream->next - 1;
    numbers.push_back({stream->id, Sequence{stream->reserved}, Sequence{stream->ceiling}});
  }
  return numbers;
}

void StoreLedger::verify_exact(const Recovered& recovered) const {
  EXPECT_TRUE(recovered.clean);
  for (const auto& stream : streams_) {
    if (stream->deleted != Known::no) continue;
    const auto* found = find(recovered, stream->id);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->next.value, stream->next);
    EXPECT_EQ(found->delivered_ceiling.value, stream->next - 1);
  }
}

}  // namespace stoat::store::testing
