#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/definitions.hpp"
#include "broker/replica.hpp"
#include "broker/topology.hpp"
#include "broker/worker.hpp"
#include "store/store.hpp"

namespace stoat::broker {

// Owns the definitions. Validates a change, creates what it needs at its home, persists it, and
// only then tells every worker's replica. One change at a time, in the order asked for.
//
// Owner: Server. Thread: worker 0's; connections co_await it from theirs through call().
// Errors: wire::ChannelError as behaviour demands; wire::ConnectionError 541 when the store failed.
// Does not: check permissions (the channel knows the user).
class Control {
 public:
  Control(store::Store& store, std::vector<Worker*> workers);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  asio::io_context& io() { return workers_.front()->io(); }

  // --- before the workers run ---
  // Takes over what the store had: makes the homes' queues and the replicas. Throws
  // std::runtime_error naming a document that cannot be read.
  void recover(store::Recovered recovered);

  // --- on the control owner's thread ---
  // The queue of that name, created when absent. An existing one must be reachable for `by` (405)
  // and equivalent (406).
  asio::awaitable<QueueDef> declare_queue(QueueDef wanted, ConnectionId by);
  // How many ready messages went with it; 0 when there is none of that name.
  asio::awaitable<std::uint64_t> delete_queue(std::string vhost, std::string name, bool if_unused,
                                              bool if_empty, ConnectionId by);
  asio::awaitable<void> declare_exchange(ExchangeDef wanted);
  asio::awaitable<void> delete_exchange(std::string vhost, std::string name, bool if_unused);
  asio::awaitable<void> bind(BindingDef binding, ConnectionId by);
  asio::awaitable<void> unbind(BindingDef binding, ConnectionId by);
  // The last consumer of an auto-delete queue left.
  asio::awaitable<void> delete_unused(QueueId queue);
  // Exclusive queues of the connection go.
  asio::awaitable<void> connection_closed(ConnectionId connection);
  // Vhost "/" and user guest, at the first start.
  asio::awaitable<void> set_defaults();
  // In one change of the store: all or nothing. The definitions were checked against topology().
  asio::awaitable<void> import(Definitions definitions);

  const Topology& topology() const { return topology_; }

  // Runs one of the above on the control owner's thread, awaited from any worker's.
  template <class T>
  asio::awaitable<T> call(asio::awaitable<T> operation) {
    return asio::co_spawn(io(), std::move(operation), asio::use_awaitable);
  }

 private:
  // Whoever holds it changes definitions; the others wait in order.
  class Turn;
  asio::awaitable<Turn> turn();

  asio::awaitable<void> save(store::TopologyChange change);
  asio::awaitable<void> tell(std::vector<Change> changes);
  QueueId new_queue_id(WorkerIndex home);
  void check_reachable(const QueueDef& queue, ConnectionId by) const;
  const ExchangeDef& require_exchange(const std::string& vhost, const std::string& name) const;
  void check_binding_ends(const BindingDef& binding, ConnectionId by) const;
  // Auto-delete exchanges among `sources` that no binding starts from any more go too, and so on.
  void collect_unused_exchanges(const std::string& vhost, std::set<std::string> sources,
                                store::TopologyChange& save, std::vector<Change>& tell);
  void remove_exchange(const std::string& vhost, const std::string& name,
                       store::TopologyChange& save, std::vector<Change>& tell);
  asio::awaitable<std::uint64_t> remove_queue(QueueDef queue, bool if_unused, bool if_empty,
                                              std::optional<ConnectionId> leaving);

  store::Store& store_;
  std::vector<Worker*> workers_;
  Topology topology_;
  QueueId next_queue_id_{1};
  std::map<ConnectionId, std::set<QueueId>> exclusive_queues_;
  bool taken_ = false;
  std::deque<std::shared_ptr<asio::steady_timer>> waiting_;
};

}  // namespace stoat::broker
