#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "store/store.hpp"

namespace stoat::store {

// Deleted queues of which nothing is left: their keys go too.
struct ForgetQueues {
  std::vector<QueueId> queues;
};

// Numbers at the stop, which may be smaller than those persisted ahead.
struct ExactNumbers {
  std::vector<QueueNumbers> numbers;
};

// Whether the folder is marked as cleanly stopped.
struct SetClean {
  bool clean = false;
};

// One thing to be committed, in the order submitted.
struct Submission {
  std::variant<Batch, TopologyChange, ForgetQueues, ExactNumbers, SetClean> what;
  Store::Completion done;  // may be empty for the store's own

  std::size_t bytes() const {
    std::size_t sum = 0;
    if (const auto* batch = std::get_if<Batch>(&what)) {
      for (const Put& put : batch->puts) sum += put.bytes.size();
    } else if (const auto* change = std::get_if<TopologyChange>(&what)) {
      for (const auto& [key, json] : change->puts) sum += key.size() + json.size();
    }
    return sum;
  }
};

}  // namespace stoat::store
