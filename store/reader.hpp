#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "store/database.hpp"
#include "store/store.hpp"
#include "store/stream_table.hpp"

namespace stoat::store {

// Answers reads, one after the other, from both families of messages merged by sequence. Reads go
// through iterators: those keep the tables they began on while the flush filter works, snapshots do
// not.
//
// Below the point where a stream was recovered nothing will ever be put again, so what a read finds
// missing there without being settled (a transient message of the time before) is reported as a
// gap; settled as well, it no longer holds back the watermark.
//
// Owner: RocksStore. Thread: read from any, and only queues; the rest on its own.
class Reader {
 public:
  using OnGaps = std::function<void(std::vector<Settle>)>;

  Reader(Database& database, const StreamTable& streams, OnGaps on_gaps);
  ~Reader();

  void read(StreamId stream, Sequence from, ReadLimit limit, Store::ReadCompletion done);
  // Reads still waiting are answered with an error.
  void stop();

 private:
  struct Request {
    StreamId stream;
    Sequence from;
    ReadLimit limit;
    Store::ReadCompletion done;
  };

  void run();
  ReadResult answer(const Request& request);

  Database& database_;
  const StreamTable& streams_;
  const OnGaps on_gaps_;

  std::mutex mutex_;  // guards requests_ and stopping_
  std::condition_variable wake_;
  std::deque<Request> requests_;
  bool stopping_ = false;

  std::thread thread_;  // last
};

}  // namespace stoat::store
