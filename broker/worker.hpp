#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include "base/id_map.hpp"

#include "broker/config.hpp"
#include "broker/home.hpp"
#include "broker/output_buffer.hpp"
#include "broker/replica.hpp"
#include "routing/route_scratch.hpp"

namespace stoat::broker {

namespace asio = boost::asio;

class Connection;
class Control;

// What publishes under it is no client's connection; clients are numbered from 1. Of one worker
// only, since a home answers a connection where it met it first.
inline constexpr ConnectionId kInternalConnection{0};

// Where a direct reply goes: the requester's channel, named by the routing key that its request
// carried as reply-to.
struct ReplyAddress {
  WorkerIndex worker;
  ConnectionId connection;
  ChannelRef channel;
  std::uint64_t secret = 0;  // an address cannot be guessed from another
};

// Plain figures of one connection for the admin door.
struct ConnectionStats {
  ConnectionId id;
  std::string name;
  std::string peer;
  std::string user;
  std::string vhost;
  std::string state;
  std::size_t channels = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

// One thread with one event loop: the connections it accepted, the queues whose home it is, and its
// own copy of the definitions. Workers share nothing; they post batches to each other.
//
// Owner: Server. Thread: its own, save where a function says "any thread".
// Invariant: end_turn() follows whatever changed something (a read, a batch, a completion), so that
// everything staged leaves at most once per turn.
class Worker {
 public:
  // The config, store and clock must outlive it.
  Worker(WorkerIndex index, const Config& config, store::Store& store, const Clock& clock);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Before start(): who else there is (itself included, by index) and who owns the definitions.
  void connect(std::vector<Worker*> workers, Control& control);
  void start();
  // Any thread. Ends the loop; join() waits for it.
  void stop();
  void join();

  // Any thread.
  WorkerIndex index() const { return index_; }
  asio::io_context& io() { return io_; }
  bool on_this_thread() const {
    return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed);
  }
  void post(std::function<void()> work);  // runs as a turn of its own
  const Config& config() const { return config_; }
  Control& control() { return *control_; }
  Worker& peer(WorkerIndex index) { return *workers_[index.value]; }
  std::size_t worker_count() const { return workers_.size(); }
  WorkerIndex home_of(QueueId queue) const {
    return WorkerIndex(static_cast<std::uint32_t>(queue.value % workers_.size()));
  }
  std::size_t connection_count() const { return connection_count_.load(std::memory_order_relaxed); }
  // The memory or disk alarm that holds publishers back; empty text: none. Any thread.
  void set_alarm(std::string reason);

  // --- its own thread from here on ---
  Home& home() { return *home_; }
  Replica& replica() { return replica_; }
  routing::RouteScratch& route_scratch() { return route_scratch_; }
  BufferPool& buffers() { return buffers_; }
  std::span<char> read_buffer() { return read_buffer_; }
  // Taken once per turn.
  SteadyTime now() const { return now_; }
  WallTime wall_now() const { return wall_now_; }
  void refresh_clock();
  const std::string& alarm() const { return alarm_; }

  void adopt(asio::ip::tcp::socket socket, ConnectionId id);
  void remove(ConnectionId id);
  Connection* find(ConnectionId id);
  // connection.close with 320 to everyone.
  void close_all(const std::string& text);
  // Sockets of whoever is still there are closed without a word.
  void drop_all();
  std::vector<ConnectionStats> connection_stats() const;
  std::size_t channel_count() const;
  // Takes what homes answer to kInternalConnection.
  void set_internal_sink(std::function<void(const ToConnection&)> sink) {
    internal_sink_ = std::move(sink);
  }

  // Hands a batch to a home, this worker's own or another's; takes the contents.
  void send_to_home(WorkerIndex home, ConnectionId from, ToHome& batch);
  void send_reply(const ReplyAddress& to, const MessagePtr& message);
  // The connection has output, confirms or batches that leave at the end of the turn.
  void mark_dirty(const std::shared_ptr<Connection>& connection);
  void end_turn();
  // The connections' tick() runs no later than that.
  void schedule_tick(SteadyTime due);

  // Resumes on this worker when the store is done.
  asio::awaitable<std::optional<store::StoreError>> submit(store::Batch batch);

  std::uint64_t random();

 private:
  std::string name_of(QueueId id) const;
  void deliver(ConnectionId to, WorkerIndex worker, ToConnection& batch);
  void receive(ConnectionId to, WorkerIndex from_home, ToConnection& batch);
  void bounce(WorkerIndex home, ConnectionId from, const ToConnection& batch);
  bool flush_dirty();
  void tick();

  const WorkerIndex index_;
  const Config& config_;
  store::Store& store_;
  const Clock& clock_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
  std::vector<Worker*> workers_;
  Control* control_ = nullptr;

  SteadyTime now_;
  WallTime wall_now_;
  std::unique_ptr<Home> home_;
  Replica replica_;
  routing::RouteScratch route_scratch_;
  BufferPool buffers_;
  std::vector<char> read_buffer_;
  IdMap<ConnectionId, std::shared_ptr<Connection>> connections_;
  std::atomic<std::size_t> connection_count_{0};
  std::function<void(const ToConnection&)> internal_sink_;
  std::vector<std::shared_ptr<Connection>> dirty_;
  std::vector<std::shared_ptr<Connection>> flushing_;
  bool in_turn_ = false;
  bool turn_posted_ = false;
  asio::steady_timer tick_timer_;
  SteadyTime tick_due_ = SteadyTime::max();
  std::string alarm_;
  std::uint64_t random_state_[2];
};

// Runs `fn` on the worker's thread and awaits its result; a plain call when that is this thread.
// What was posted to the worker from this thread before runs before.
template <class Fn>
asio::awaitable<std::invoke_result_t<Fn>> run_on(Worker& worker, Fn fn) {
  if (worker.on_this_thread()) co_return fn();
  auto there = [](Worker& w, Fn work) -> asio::awaitable<std::invoke_result_t<Fn>> {
    w.refresh_clock();
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      work();
      w.end_turn();
    } else {
      auto result = work();
      w.end_turn();
      co_return result;
    }
  };
  co_return co_await asio::co_spawn(worker.io(), there(worker, std::move(fn)), asio::use_awaitable);
}

// How much one read takes at most.
inline constexpr std::size_t kReadBufferBytes = 256 * 1024;

}  // namespace stoat::broker
