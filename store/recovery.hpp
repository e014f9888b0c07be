#pragma once

#include <cstdint>
#include <vector>

#include "store/database.hpp"
#include "store/shared_body.hpp"
#include "store/store.hpp"
#include "store/stream_table.hpp"

namespace stoat::store {

struct RecoveryResult {
  Recovered recovered;
  std::vector<QueueId> deleted_queues;  // whose range is not known to be free yet
  std::uint64_t alive_bytes = 0;        // of durable messages
  BodyId next_body_id;                  // above every body id that is in use
};

// Reads the folder back at start: the topology, and of each queue its streams' records and chunks,
// into `streams`. Reads no message; of a stream with messages it looks up the first and the last
// key.
//
// What was given out before but lies beyond the last key, or before the first, is settled here:
// those messages were never stored or were transient.
//
// Thread: the opening one, before any other knows `streams`. Throws StoreOpenError.
RecoveryResult recover(Database& database, StreamTable& streams);

}  // namespace stoat::store
