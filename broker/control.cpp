#include "broker/control.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/equivalence.hpp"
#include "broker/log.hpp"
#include "broker/queue_arguments.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;

constexpr wire::MethodId kExchangeDelete = wire::exchange::Delete::kId;
constexpr wire::MethodId kQueueDelete = wire::queue::Delete::kId;

void put(store::TopologyChange& change, Document document) {
  change.puts.emplace_back(std::move(document.key), std::move(document.json));
}

wire::MethodId bind_method(const BindingDef& binding) {
  return binding.destination_kind == DestinationKind::queue ? wire::queue::Bind::kId
                                                            : wire::exchange::Bind::kId;
}

}  // namespace

// Whoever holds one may change the definitions; when it goes, the next in line may.
class Control::Turn {
 public:
  explicit Turn(Control& control) : control_(&control) {}
  Turn(Turn&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (control_ == nullptr) return;
    if (control_->waiting_.empty()) {
      control_->taken_ = false;
      return;
    }
    const auto next = control_->waiting_.front();
    control_->waiting_.pop_front();
    next->cancel();  // it stays taken: handed over
  }

 private:
  Control* control_;
};

Control::Control(store::Store& store, std::vector<Worker*> workers)
    : store_(store), workers_(std::move(workers)) {}

Control::~Control() = default;

asio::awaitable<Control::Turn> Control::turn() {
  if (taken_) {
    auto mine = std::make_shared<asio::steady_timer>(io(), SteadyTime::max());
    waiting_.push_back(mine);
    co_await mine->async_wait(asio::as_tuple(asio::use_awaitable));
  }
  taken_ = true;
  co_return Turn(*this);
}

// --- start ---

void Control::recover(store::Recovered recovered) {
  std::vector<std::string> dropped;
  topology_ = Topology::load(recovered.topology, dropped);
  for (const std::string& binding : dropped)
    log::warn("dropped a binding without an end: " + binding);
  next_queue_id_ = std::max(next_queue_id_, recovered.next_queue_id);

  std::map<QueueId, const store::RecoveredStream*> streams;
  for (const auto& stream : recovered.streams) streams[stream.stream.queue] = &stream;

  std::vector<Change> changes;
  for (const auto& [name, vhost] : topology_.vhosts()) changes.push_back(change::AddVhost{name});
  for (const auto& [name, user] : topology_.users()) changes.push_back(change::SetUser{user});
  for (const auto& [key, p] : topology_.permissions()) changes.push_back(change::SetPermission{p});
  for (const auto& [key, e] : topology_.exchanges()) changes.push_back(change::AddExchange{e});
  for (const auto& [key, queue] : topology_.queues()) {
    Worker& home = *workers_[queue.spec.id.value % workers_.size()];
    const auto stream = streams.find(queue.spec.id);
    home.home().create_queue(queue.spec, stream == streams.end() ? nullptr : stream->second,
                             recovered.clean);
    changes.push_back(change::AddQueue{queue});
  }
  for (const auto& [source, bindings] : topology_.bindings()) {
    for (const BindingDef& binding : bindings) changes.push_back(change::AddBinding{binding});
  }
  for (Worker* worker : workers_) {
    for (const Change& change : changes) worker->replica().apply(change);
  }
}

asio::awaitable<void> Control::set_defaults() {
  const Turn mine = co_await turn();
  topology_.set_defaults();
  std::vector<Change> changes;
  for (const auto& [name, vhost] : topology_.vhosts()) changes.push_back(change::AddVhost{name});
  for (const auto& [name, user] : topology_.users()) changes.push_back(change::SetUser{user});
  for (const auto& [key, p] : topology_.permissions()) changes.push_back(change::SetPermission{p});
  for (const auto& [key, e] : topology_.exchanges()) changes.push_back(change::AddExchange{e});
  store::TopologyChange change;
  for (Document& document : topology_.documents()) put(change, std::move(document));
  co_await save(std::move(change));
  co_await tell(std::move(changes));
}

asio::awaitable<void> Control::import(Definitions definitions) {
  const Turn mine = co_await turn();
  store::TopologyChange change;
  std::vector<Change> changes;
  for (const VhostDef& vhost : definitions.vhosts) {
    topology_.add_vhost(vhost.name);
    put(change, Topology::document(vhost));
    changes.push_back(change::AddVhost{vhost.name});
    for (const auto& [key, exchange] : topology_.exchanges()) {
      if (exchange.vhost == vhost.name) changes.push_back(change::AddExchange{exchange});
    }
  }
  for (const UserDef& user : definitions.users) {
    topology_.add_user(user);
    put(change, Topology::document(user));
    changes.push_back(change::SetUser{user});
  }
  for (const PermissionDef& permission : definitions.permissions) {
    topology_.add_permission(permission);
    put(change, Topology::document(permission));
    changes.push_back(change::SetPermission{permission});
  }
  for (const ExchangeDef& exchange : definitions.exchanges) {
    topology_.add_exchange(exchange);
    if (Topology::persists(exchange)) put(change, Topology::document(exchange));
    changes.push_back(change::AddExchange{exchange});
  }
  for (const QueueSpec& spec : definitions.queues) {
    QueueDef queue;
    queue.spec = spec;
    queue.home = WorkerIndex(static_cast<std::uint32_t>(next_queue_id_.value % workers_.size()));
    queue.spec.id = new_queue_id(queue.home);
    Worker& home = *workers_[queue.home.value];
    auto create = [&home, spec = queue.spec] { home.home().create_queue(spec, nullptr, true); };
    co_await run_on(home, std::move(create));
    topology_.add_queue(queue);
    if (Topology::persists(queue)) {
      put(change, Topology::document(queue));
      change.created_queues.push_back(queue.spec.id);
    }
    changes.push_back(change::AddQueue{queue});
  }
  for (const BindingDef& binding : definitions.bindings) {
    topology_.add_binding(binding);
    if (topology_.persists(binding)) put(change, Topology::document(binding));
    changes.push_back(change::AddBinding{binding});
  }
  co_await save(std::move(change));
  co_await tell(std::move(changes));
}

// --- shared steps ---

asio::awaitable<void> Control::save(store::TopologyChange change) {
  if (change.puts.empty() && change.erases.empty() && change.created_queues.empty() &&
      change.deleted_queues.empty()) {
    co_return;
  }
  using Result = std::optional<store::StoreError>;
  auto start = [this](auto handler, store::TopologyChange moved) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    store_.save_topology(std::move(moved), [this, shared](const Result& error) {
      workers_.front()->post([shared, error] { std::move (*shared)(error); });
    });
  };
  const Result failure = co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result)>(
      std::move(start), asio::use_awaitable, std::move(change));
  if (failure) {
    throw wire::ConnectionError(wire::ConnectionErrorCode::internal_error,
                                "the change could not be stored");
  }
}

asio::awaitable<void> Control::tell(std::vector<Change> changes) {
  const auto shared = std::make_shared<const std::vector<Change>>(std::move(changes));
  for (Worker* worker : workers_) {
    auto apply = [worker, shared] {
      for (const Change& change : *shared) worker->replica().apply(change);
    };
    co_await run_on(*worker, std::move(apply));
  }
}

QueueId Control::new_queue_id(WorkerIndex home) {
  QueueId id = next_queue_id_;
  while (id.value % workers_.size() != home.value) id = id.next();
  next_queue_id_ = id.next();
  return id;
}

void Control::check_reachable(const QueueDef& queue, ConnectionId by) const {
  if (queue.owner && *queue.owner != by) {
    throw_locked(queue.spec.name, queue.spec.vhost, wire::queue::Declare::kId);
  }
}

const ExchangeDef& Control::require_exchange(const std::string& vhost,
                                             const std::string& name) const {
  const ExchangeDef* exchange = topology_.find_exchange(vhost, name);
  if (exchange == nullptr) {
    throw wire::ChannelError(ChannelErrorCode::not_found, "no " + exchange_in_vhost(name, vhost));
  }
  return *exchange;
}

// --- queues ---

asio::awaitable<QueueDef> Control::declare_queue(QueueDef wanted, ConnectionId by) {
  const Turn mine = co_await turn();
  if (const QueueDef* current = topology_.find_queue(wanted.spec.vhost, wanted.spec.name)) {
    check_reachable(*current, by);
    check_equivalent(current->spec, wanted.spec);
    co_return *current;
  }
  wanted.spec.id = new_queue_id(wanted.home);
  Worker& home = *workers_[wanted.home.value];
  auto create = [&home, spec = wanted.spec] { home.home().create_queue(spec, nullptr, true); };
  co_await run_on(home, std::move(create));
  if (Topology::persists(wanted)) {
    store::TopologyChange change;
    put(change, Topology::document(wanted));
    change.created_queues.push_back(wanted.spec.id);
    co_await save(std::move(change));
  }
  topology_.add_queue(wanted);
  if (wanted.owner) exclusive_queues_[*wanted.owner].insert(wanted.spec.id);
  std::vector<Change> changes{change::AddQueue{wanted}};
  co_await tell(std::move(changes));
  co_return wanted;
}

asio::awaitable<std::uint64_t> Control::delete_queue(std::string vhost, std::string name,
                                                     bool if_unused, bool if_empty,
                                                     ConnectionId by) {
  const Turn mine = co_await turn();
  const QueueDef* queue = topology_.find_queue(vhost, name);
  if (queue == nullptr) co_return 0;
  if (queue->owner && *queue->owner != by) throw_locked(name, vhost, kQueueDelete);
  co_return co_await remove_queue(*queue, if_unused, if_empty, std::nullopt);
}

asio::awaitable<std::uint64_t> Control::remove_queue(QueueDef queue, bool if_unused, bool if_empty,
                                                     std::optional<ConnectionId> leaving) {
  const std::string& vhost = queue.spec.vhost;
  const std::string& name = queue.spec.name;
  Worker& home = *workers_[queue.spec.id.value % workers_.size()];
  auto remove = [&home, id = queue.spec.id, if_unused, if_empty, leaving] {
    return home.home().delete_queue(id, if_unused, if_empty, leaving);
  };
  const Home::Deleted deleted = co_await run_on(home, std::move(remove));
  if (deleted.result == Home::DeleteResult::in_use) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             queue_in_vhost(name, vhost) + " in use", kQueueDelete);
  }
  if (deleted.result == Home::DeleteResult::not_empty) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             queue_in_vhost(name, vhost) + " not empty", kQueueDelete);
  }
  store::TopologyChange change;
  std::vector<Change> changes{change::RemoveQueue{vhost, name}};
  const bool persisted = Topology::persists(queue);
  if (persisted) change.erases.push_back(Topology::document(queue).key);
  std::set<std::string> sources;
  for (const BindingDef& binding : topology_.bindings_to(vhost, DestinationKind::queue, name)) {
    if (topology_.persists(binding)) change.erases.push_back(Topology::document(binding).key);
    sources.insert(binding.source);
  }
  topology_.remove_queue(vhost, name);
  if (queue.owner) {
    auto& owned = exclusive_queues_[*queue.owner];
    owned.erase(queue.spec.id);
    if (owned.empty()) exclusive_queues_.erase(*queue.owner);
  }
  collect_unused_exchanges(vhost, std::move(sources), change, changes);
  co_await tell(std::move(changes));
  change.deleted_queues.push_back(queue.spec.id);
  if (persisted || !change.erases.empty()) {
    co_await save(std::move(change));
  } else {
    // Nothing of it has to be remembered; what it spilled is cleared away behind the answer.
    store_.save_topology(std::move(change), [](const std::optional<store::StoreError>&) {});
  }
  // Cancels and confirms that its home staged on this thread leave also when nobody waits for this.
  workers_.front()->end_turn();
  co_return deleted.messages;
}

asio::awaitable<void> Control::delete_unused(QueueId id) {
  const Turn mine = co_await turn();
  const QueueDef* queue = topology_.find_queue(id);
  if (queue == nullptr) co_return;
  co_await remove_queue(*queue, false, false, std::nullopt);
}

asio::awaitable<void> Control::connection_closed(ConnectionId connection) {
  const Turn mine = co_await turn();
  const auto owned = exclusive_queues_.find(connection);
  if (owned == exclusive_queues_.end()) co_return;
  const std::set<QueueId> queues = owned->second;
  for (QueueId id : queues) {
    const QueueDef* queue = topology_.find_queue(id);
    if (queue != nullptr) co_await remove_queue(*queue, false, false, connection);
  }
}

// --- exchanges ---

asio::awaitable<void> Control::declare_exchange(ExchangeDef wanted) {
  const Turn mine = co_await turn();
  if (const ExchangeDef* current = topology_.find_exchange(wanted.vhost, wanted.name)) {
    check_equivalent(*current, wanted);
    co_return;
  }
  store::TopologyChange change;
  if (Topology::persists(wanted)) put(change, Topology::document(wanted));
  co_await save(std::move(change));
  topology_.add_exchange(wanted);
  std::vector<Change> changes{change::AddExchange{std::move(wanted)}};
  co_await tell(std::move(changes));
}

asio::awaitable<void> Control::delete_exchange(std::string vhost, std::string name,
                                               bool if_unused) {
  const Turn mine = co_await turn();
  if (topology_.find_exchange(vhost, name) == nullptr) co_return;
  if (if_unused && topology_.is_source(vhost, name)) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             exchange_in_vhost(name, vhost) + " in use", kExchangeDelete);
  }
  store::TopologyChange change;
  std::vector<Change> changes;
  remove_exchange(vhost, name, change, changes);
  co_await tell(std::move(changes));
  co_await save(std::move(change));
}

void Control::remove_exchange(const std::string& vhost, const std::string& name,
                              store::TopologyChange& save, std::vector<Change>& tell) {
  const ExchangeDef* exchange = topology_.find_exchange(vhost, name);
  STOAT_ASSERT(exchange != nullptr, name);
  if (Topology::persists(*exchange)) save.erases.push_back(Topology::document(*exchange).key);
  std::set<std::string> sources;
  std::vector<BindingDef> ending = topology_.bindings_to(vhost, DestinationKind::exchange, name);
  for (const BindingDef& binding : ending) sources.insert(binding.source);
  if (const auto it = topology_.bindings().find({vhost, name}); it != topology_.bindings().end()) {
    ending.insert(ending.end(), it->second.begin(), it->second.end());
  }
  for (const BindingDef& binding : ending) {
    if (topology_.persists(binding)) save.erases.push_back(Topology::document(binding).key);
  }
  topology_.remove_exchange(vhost, name);
  tell.push_back(change::RemoveExchange{vhost, name});
  sources.erase(name);
  collect_unused_exchanges(vhost, std::move(sources), save, tell);
}

void Control::collect_unused_exchanges(const std::string& vhost, std::set<std::string> sources,
                                       store::TopologyChange& save, std::vector<Change>& tell) {
  for (const std::string& source : sources) {
    const ExchangeDef* exchange = topology_.find_exchange(vhost, source);
    if (exchange == nullptr || !exchange->auto_delete || topology_.is_source(vhost, source))
      continue;
    remove_exchange(vhost, source, save, tell);
  }
}

// --- bindings ---

void Control::check_binding_ends(const BindingDef& binding, ConnectionId by) const {
  const ExchangeDef& source = require_exchange(binding.vhost, binding.source);
  if (binding.destination_kind == DestinationKind::exchange) {
    require_exchange(binding.vhost, binding.destination);
  } else {
    const QueueDef* queue = topology_.find_queue(binding.vhost, binding.destination);
    if (queue == nullptr) {
      throw wire::ChannelError(ChannelErrorCode::not_found,
                               "no " + queue_in_vhost(binding.destination, binding.vhost));
    }
    check_reachable(*queue, by);
  }
  routing::ExchangeType type;
  if (routing::parse_exchange_type(source.type, type) && type == routing::ExchangeType::headers) {
    const std::string mistake = routing::check_headers_binding(binding.arguments);
    if (!mistake.empty()) {
      throw wire::ChannelError(ChannelErrorCode::precondition_failed, mistake,
                               bind_method(binding));
    }
  }
}

asio::awaitable<void> Control::bind(BindingDef binding, ConnectionId by) {
  const Turn mine = co_await turn();
  check_binding_ends(binding, by);
  if (topology_.has_binding(binding)) co_return;
  store::TopologyChange change;
  if (topology_.persists(binding)) put(change, Topology::document(binding));
  co_await save(std::move(change));
  topology_.add_binding(binding);
  std::vector<Change> changes{change::AddBinding{std::move(binding)}};
  co_await tell(std::move(changes));
}

asio::awaitable<void> Control::unbind(BindingDef binding, ConnectionId by) {
  const Turn mine = co_await turn();
  const QueueDef* queue = binding.destination_kind == DestinationKind::queue
                              ? topology_.find_queue(binding.vhost, binding.destination)
                              : nullptr;
  if (queue != nullptr) check_reachable(*queue, by);
  // What is not there is unbound already.
  if (!topology_.has_binding(binding)) co_return;
  store::TopologyChange change;
  if (topology_.persists(binding)) change.erases.push_back(Topology::document(binding).key);
  topology_.remove_binding(binding);
  std::vector<Change> changes{change::RemoveBinding{binding}};
  collect_unused_exchanges(binding.vhost, {binding.source}, change, changes);
  co_await tell(std::move(changes));
  co_await save(std::move(change));
}

}  // namespace stoat::broker
