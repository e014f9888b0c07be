#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/open.hpp"
#include "tests/support/temp_dir.hpp"

// Helpers of the store's tests: short forms of what is submitted, and blocking forms of the calls.

namespace stoat::store::testing {

inline Put put(StreamId stream, std::uint64_t sequence, std::string_view bytes) {
  return {stream, Sequence{sequence}, bytes, false};
}
inline Put put_transient(StreamId stream, std::uint64_t sequence, std::string_view bytes) {
  return {stream, Sequence{sequence}, bytes, true};
}
inline Settle settle(StreamId stream, std::uint64_t first, std::uint64_t last, std::uint64_t count,
                     std::uint64_t bytes) {
  return {stream, Sequence{first}, Sequence{last}, count, bytes};
}

inline std::optional<StoreError> commit(Store& store, Batch batch) {
  std::promise<std::optional<StoreError>> done;
  store.submit(std::move(batch), [&](const auto& error) { done.set_value(error); });
  return done.get_future().get();
}

inline std::optional<StoreError> commit(Store& store, TopologyChange change) {
  std::promise<std::optional<StoreError>> done;
  store.save_topology(std::move(change), [&](const auto& error) { done.set_value(error); });
  return done.get_future().get();
}

inline ReadResult read(Store& store, StreamId stream, std::uint64_t from, ReadLimit limit) {
  std::promise<ReadResult> done;
  store.read(stream, Sequence{from}, limit,
             [&](ReadResult result) { done.set_value(std::move(result)); });
  return done.get_future().get();
}

inline std::vector<std::uint64_t> sequences(const ReadResult& result) {
  std::vector<std::uint64_t> numbers;
  for (const auto& message : result.messages) numbers.push_back(message.sequence.value);
  return numbers;
}

// All alive sequences of a stream below `end`, read in steps of a few.
inline std::vector<std::uint64_t> alive(Store& store, StreamId stream, std::uint64_t end) {
  std::vector<std::uint64_t> numbers;
  ReadLimit limit;
  limit.end = Sequence{end};
  limit.max_messages = 100;
  Sequence from{1};
  while (true) {
    const ReadResult result = read(store, stream, from.value, limit);
    if (result.error) throw std::runtime_error(result.error->text);
    for (auto number : sequences(result)) numbers.push_back(number);
    if (result.end) return numbers;
    if (result.resume_from <= from) throw std::runtime_error("a read made no headway");
    from = result.resume_from;
  }
}

inline const RecoveredStream* find(const Recovered& recovered, StreamId id) {
  for (const auto& stream : recovered.streams) {
    if (stream.stream == id) return &stream;
  }
  return nullptr;
}

inline TopologyChange created(QueueId queue) {
  TopologyChange change;
  change.created_queues.push_back(queue);
  return change;
}

inline TopologyChange deleted(QueueId queue) {
  TopologyChange change;
  change.deleted_queues.push_back(queue);
  return change;
}

}  // namespace stoat::store::testing
