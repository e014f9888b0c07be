#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "broker/home.hpp"
#include "broker/outboxes.hpp"
#include "broker/persister.hpp"
#include "broker/queue.hpp"
#include "broker/window_budget.hpp"

namespace stoat::broker {

// What stands behind Home: the queues by id, and what they share.
//
// Owner: Home. Thread: its worker's, but for the lambdas that the store calls, which only post.
struct Home::Impl {
  struct Transaction {
    struct Prepared {
      QueueId queue;
      Sequence sequence;
      MessagePtr message;  // its bytes are the batch's, even if the queue goes
    };
    std::vector<Prepared> publishes;
    std::vector<Settle> settles;
  };
  // Outlives the home in what the store still holds, so that a late completion finds nobody.
  struct Door {
    std::function<void(std::function<void()>)> post;
    Impl* home = nullptr;  // the worker's thread only
  };

  Impl(store::Store& store_in, Hooks hooks_in, HomeLimits limits_in);
  ~Impl();

  Queue* find(QueueId id);
  const Queue* find(QueueId id) const { return const_cast<Impl*>(this)->find(id); }
  // The consumer, when it is that queue's.
  Consumer* find_consumer(QueueId queue, ConnectionId connection, ConsumerId consumer);

  void take_publishes(Outbox& publisher, std::vector<Publish>& publishes);
  void take_lease(Outbox& outbox, const Lease& lease);

  void submit(Persister::BatchNumber number, store::Batch batch);
  void batch_completed(Persister::BatchNumber number, bool failed);
  void read(store::StreamId stream, std::uint32_t generation,
            const ReadyMessages::ReadRequest& request);
  void read_completed(QueueId queue, std::uint32_t generation, store::ReadResult result);

  void dispatch_changed();
  void tell_unused();
  void finish_gets();
  void finish_drains();

  store::Store& store;
  const Hooks hooks;
  const HomeLimits limits;
  const std::shared_ptr<Door> door;

  Outboxes outboxes;
  Persister persister;
  WindowBudget budget;
  QueueContext context;
  boost::unordered_flat_map<QueueId, std::unique_ptr<Queue>, std::hash<QueueId>> queues;
  // Looked up last: publishes and settles come in runs of one queue.
  QueueId last_id;
  Queue* last = nullptr;

  boost::unordered_flat_map<TxId, Transaction> transactions;
  TxId last_transaction = 0;
  std::vector<std::function<void()>> drains;
  std::vector<Queue*> dispatching;
};

}  // namespace stoat::broker
