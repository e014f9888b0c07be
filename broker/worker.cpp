#include "broker/worker.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <random>

#include "base/assert.hpp"
#include "base/thread_name.hpp"
#include "broker/connection.hpp"
#include "broker/control.hpp"
#include "broker/log.hpp"
#include "broker/queue_arguments.hpp"
#include "store/open.hpp"

namespace stoat::broker {

namespace {

// A turn that keeps making work for itself (a fast consumer on a deep queue) lets the others of the
// loop run after this many rounds.
constexpr int kRoundsPerTurn = 2;

}  // namespace

Worker::Worker(WorkerIndex index, const Config& config, store::Store& store, const Clock& clock)
    : index_(index),
      config_(config),
      store_(store),
      clock_(clock),
      work_(io_.get_executor()),
      now_(clock.steady_now()),
      wall_now_(clock.wall_now()),
      read_buffer_(kReadBufferBytes),
      tick_timer_(io_) {
  Home::Hooks hooks;
  hooks.post = [this](std::function<void()> work) { post(std::move(work)); };
  hooks.deliver = [this](ConnectionId to, WorkerIndex worker, ToConnection& batch) {
    deliver(to, worker, batch);
  };
  hooks.unused = [this](QueueId queue) {
    asio::co_spawn(control_->io(), control_->delete_unused(queue), asio::detached);
  };
  hooks.unreadable = [this](QueueId queue, const std::string& text) {
    log::error(name_of(queue) + " cannot be read, its consumers are cancelled: " + text +
               store::kDamagedAdvice);
  };
  home_ = std::make_unique<Home>(index, store, clock, std::move(hooks));
  std::random_device seed;
  for (auto& word : random_state_) word = (std::uint64_t{seed()} << 32) | seed();
}

Worker::~Worker() = default;

// For the log, and seldom: looks through all queues.
std::string Worker::name_of(QueueId id) const {
  for (const auto& [vhost_name, vhost] : replica_.vhosts()) {
    for (const auto& [name, queue] : vhost->queues) {
      if (queue.spec.id == id) return queue_in_vhost(name, vhost_name);
    }
  }
  return "queue number " + std::to_string(id.value);
}

void Worker::connect(std::vector<Worker*> workers, Control& control) {
  workers_ = std::move(workers);
  control_ = &control;
}

void Worker::start() {
  thread_ = std::thread([this] {
    name_this_thread(("worker-" + std::to_string(index_.value)).c_str());
    thread_id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    io_.run();
  });
}

void Worker::stop() {
  io_.stop();
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::post(std::function<void()> work) {
  asio::post(io_, [this, work = std::move(work)] {
    refresh_clock();
    work();
    end_turn();
  });
}

void Worker::refresh_clock() {
  now_ = clock_.steady_now();
  wall_now_ = clock_.wall_now();
}

std::uint64_t Worker::random() {
  // xorshift128+: names and reply addresses need to be distinct, and hard to guess from outside.
  std::uint64_t a = random_state_[0];
  const std::uint64_t b = random_state_[1];
  random_state_[0] = b;
  a ^= a << 23;
  random_state_[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
  return random_state_[1] + b;
}

void Worker::set_alarm(std::string reason) {
  post([this, reason = std::move(reason)] {
    if (alarm_ == reason) return;
    alarm_ = reason;
    for (auto& [id, connection] : connections_) connection->on_alarm();
  });
}

void Worker::adopt(asio::ip::tcp::socket socket, ConnectionId id) {
  auto connection = std::make_shared<Connection>(*this, id, std::move(socket));
  connections_.emplace(id, connection);
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
  connection->start();
  schedule_tick(connection->tick(now_));
}

void Worker::remove(ConnectionId id) {
  connections_.erase(id);
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
}

Connection* Worker::find(ConnectionId id) {
  const auto it = connections_.find(id);
  return it == connections_.end() ? nullptr : it->second.get();
}

void Worker::close_all(const std::string& text) {
  const auto all = connections_;
  for (const auto& [id, connection] : all) {
    connection->close(wire::ConnectionErrorCode::connection_forced, text);
  }
}

void Worker::drop_all() {
  const auto all = connections_;
  for (const auto& [id, connection] : all) connection->drop_socket();
}

std::vector<ConnectionStats> Worker::connection_stats() const {
  std::vector<ConnectionStats> all;
  for (const auto& [id, connection] : connections_) all.push_back(connection->stats());
  return all;
}

std::size_t Worker::channel_count() const {
  std::size_t count = 0;
  for (const auto& [id, connection] : connections_) count += connection->channel_count();
  return count;
}

void Worker::send_to_home(WorkerIndex home, ConnectionId from, ToHome& batch) {
  if (home == index_) {
    home_->take(from, index_, batch);
    batch.clear();
    return;
  }
  peer(home).post([&there = peer(home), from, worker = index_,
                   moved = std::make_shared<ToHome>(std::move(batch))] {
    there.home().take(from, worker, *moved);
  });
  batch = {};
}

void Worker::deliver(ConnectionId to, WorkerIndex worker, ToConnection& batch) {
  if (worker == index_) {
    receive(to, index_, batch);
    batch.clear();
    return;
  }
  peer(worker).post([&there = peer(worker), to, home = index_,
                     moved = std::make_shared<ToConnection>(std::move(batch))] {
    there.receive(to, home, *moved);
  });
  batch = {};
}

void Worker::receive(ConnectionId to, WorkerIndex from_home, ToConnection& batch) {
  if (to == kInternalConnection) {
    if (internal_sink_) internal_sink_(batch);
    return;
  }
  const auto it = connections_.find(to);
  if (it == connections_.end()) return bounce(from_home, to, batch);
  it->second->take(from_home, batch);
}

// The connection is gone: its deliveries go back as if they had never left.
void Worker::bounce(WorkerIndex home, ConnectionId from, const ToConnection& batch) {
  if (batch.deliveries.empty()) return;
  auto back = std::make_shared<ToHome>();
  for (const Delivery& d : batch.deliveries) {
    back->settles.push_back({d.queue, d.position.stream, SettleKind::undelivered,
                             d.position.sequence, d.position.sequence});
  }
  // Posted also to this worker: the home is in the middle of handing out.
  peer(home).post([&there = peer(home), from, worker = index_, back] {
    there.home().take(from, worker, *back);
  });
}

void Worker::send_reply(const ReplyAddress& to, const MessagePtr& message) {
  if (to.worker.value >= workers_.size()) return;
  Worker& there = peer(to.worker);
  there.post([&there, to, message] {
    if (Connection* connection = there.find(to.connection)) connection->take_reply(to, message);
  });
}

void Worker::mark_dirty(const std::shared_ptr<Connection>& connection) {
  dirty_.push_back(connection);
}

bool Worker::flush_dirty() {
  if (dirty_.empty()) return false;
  flushing_.swap(dirty_);
  for (const auto& connection : flushing_) connection->flush();
  flushing_.clear();
  return true;
}

void Worker::end_turn() {
  if (in_turn_) return;
  in_turn_ = true;
  bool more = true;
  for (int round = 0; more && round < kRoundsPerTurn; ++round) {
    home_->end_turn();
    more = flush_dirty();
  }
  in_turn_ = false;
  if (!more || turn_posted_) return;
  turn_posted_ = true;
  asio::post(io_, [this] {
    turn_posted_ = false;
    refresh_clock();
    end_turn();
  });
}

void Worker::schedule_tick(SteadyTime due) {
  if (due >= tick_due_) return;
  tick_due_ = due;
  tick_timer_.expires_at(due);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

// Heartbeats and time limits of all connections: one timer per worker, none without connections.
void Worker::tick() {
  refresh_clock();
  tick_due_ = SteadyTime::max();
  SteadyTime next = SteadyTime::max();
  const std::vector<std::shared_ptr<Connection>> all = [this] {
    std::vector<std::shared_ptr<Connection>> list;
    list.reserve(connections_.size());
    for (const auto& [id, connection] : connections_) list.push_back(connection);
    return list;
  }();
  for (const auto& connection : all) next = std::min(next, connection->tick(now_));
  end_turn();
  if (next != SteadyTime::max()) schedule_tick(next);
}

asio::awaitable<std::optional<store::StoreError>> Worker::submit(store::Batch batch) {
  using Result = std::optional<store::StoreError>;
  auto start = [this](auto handler, store::Batch moved) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    store_.submit(std::move(moved), [this, shared](const Result& error) {
      asio::post(io_, [this, shared, error] {
        refresh_clock();
        std::move (*shared)(error);
        end_turn();
      });
    });
  };
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result)>(
      std::move(start), asio::use_awaitable, std::move(batch));
}

}  // namespace stoat::broker
