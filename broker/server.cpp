#include "broker/server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>
#include <vector>

#include "broker/admin/door.hpp"
#include "broker/alarms.hpp"
#include "broker/control.hpp"
#include "broker/definitions.hpp"
#include "broker/folder_inspection.hpp"
#include "broker/listener.hpp"
#include "broker/log.hpp"
#include "broker/worker.hpp"
#include "store/open.hpp"

namespace stoat::broker {

namespace {

// How long connections have for their goodbye before their sockets are closed.
constexpr std::chrono::seconds kStopTimeout{5};
constexpr std::chrono::milliseconds kStopPoll{5};
constexpr const char* kShutdownText = "broker forced connection closure with reason 'shutdown'";

// Descriptors that connections leave to others: the store's tables and logs, admin sessions.
constexpr std::uint64_t kReservedDescriptors = 512;

// As high as it goes; what it is then.
std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  if (limit.rlim_cur != limit.rlim_max) {
    rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

// A store that finds no descriptor for its next file has failed, so connections must not take them
// all. Where there are few, most are the store's.
void fit_connections_to_descriptors(Config& config) {
  const std::uint64_t limit = raise_descriptor_limit();
  const std::uint64_t reserved = std::min(kReservedDescriptors, limit - limit / 4);
  const std::uint64_t most = limit - reserved;
  if (config.max_connections <= most) return;
  log::warn("max_connections is lowered from " + std::to_string(config.max_connections) + " to " +
            std::to_string(most) + ": the limit of open files is " + std::to_string(limit));
  config.max_connections = static_cast<std::uint32_t>(most);
}

// Runs on the worker's thread; waits for its answer.
template <class Fn>
auto ask(Worker& worker, Fn fn) {
  std::promise<std::invoke_result_t<Fn>> answer;
  auto future = answer.get_future();
  worker.post([&] {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      fn();
      answer.set_value();
    } else {
      answer.set_value(fn());
    }
  });
  return future.get();
}

}  // namespace

struct Server::Impl {
  explicit Impl(Config c) : config(std::move(c)) {}

  void start();
  void stop();
  std::vector<Worker*> worker_list() const;
  bool wait_for_connections(std::chrono::steady_clock::duration limit);
  void drain_homes();

  Config config;
  std::function<void(const std::string&)> on_fatal;
  SystemClock clock;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<admin::Door> door;  // before the workers, since it has to outlive them
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<Control> control;
  std::unique_ptr<Alarms> alarms;
  std::unique_ptr<Listener> listener;
  bool running = false;
  std::atomic<bool> store_failed = false;
};

std::vector<Worker*> Server::Impl::worker_list() const {
  std::vector<Worker*> list;
  for (const auto& worker : workers) list.push_back(worker.get());
  return list;
}

void Server::Impl::start() {
  fit_connections_to_descriptors(config);
  store::RocksOptions options;
  options.data_dir = config.data_dir;
  options.salvage = config.salvage;
  options.on_failure = [this](const store::StoreError& error) {
    log::error("the store failed, nothing is confirmed any more: " + error.text);
    store_failed = true;
    if (on_fatal) on_fatal(error.text);
  };
  options.on_log_line = [](std::string_view line) { log::warn("store: " + std::string(line)); };
  options.on_salvaged = [](const store::FolderReport& report) {
    for (const std::string& line : inspection_lines(report)) log::warn("salvage: " + line);
    log::warn("salvage: all that could be read is kept; the damaged files are in " +
              report.kept_aside);
  };
  store = store::open_rocks_store(std::move(options));
  store::Recovered recovered = store->recover();
  const bool first_start = recovered.topology.empty();
  if (!recovered.clean) log::warn("the last stop was not clean; recovered from the log");

  for (std::uint32_t i = 0; i < config.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(WorkerIndex(i), config, *store, clock));
  }
  control = std::make_unique<Control>(*store, worker_list());
  for (const auto& worker : workers) worker->connect(worker_list(), *control);
  control->recover(std::move(recovered));
  alarms = std::make_unique<Alarms>(config, worker_list());
  // Binds before anything runs: a port that is taken leaves nothing behind.
  listener = std::make_unique<Listener>(worker_list(), config.bind, config.amqp_port,
                                        config.max_connections, [this] { alarms->wake(); });
  door = std::make_unique<admin::Door>(worker_list(), config.bind, config.admin_port,
                                       listener->port(), [this] { alarms->wake(); });
  for (const auto& worker : workers) worker->start();
  running = true;
  const auto wait_for = [this](asio::awaitable<void> operation) {
    asio::co_spawn(control->io(), std::move(operation), asio::use_future).get();
  };
  if (first_start) wait_for(control->set_defaults());
  if (!config.load_definitions.empty()) {
    Definitions definitions = read_definitions(config.load_definitions, control->topology());
    for (const std::string& line : definitions.ignored) {
      log::warn("definitions " + config.load_definitions.string() + ": " + line);
    }
    wait_for(control->import(std::move(definitions)));
  }
  alarms->start();
  listener->start();
  door->start();
  log::info("listening for AMQP on " + config.bind + ":" + std::to_string(listener->port()));
  const std::string host =
      config.bind.find(':') == std::string::npos ? config.bind : "[" + config.bind + "]";
  const std::string address = host + ":" + std::to_string(door->port());
  log::info("admin endpoint on http://" + address + "/ (WebSocket at ws://" + address + "/ws)");
}

bool Server::Impl::wait_for_connections(std::chrono::steady_clock::duration limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    std::size_t open = 0;
    for (const auto& worker : workers) open += worker->connection_count();
    if (open == 0) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kStopPoll);
  }
}

// All that homes still have for the store; a store that has failed takes nothing.
void Server::Impl::drain_homes() {
  std::vector<std::future<void>> homes;
  for (const auto& worker : workers) {
    // Shared: it may come after the wait for it was given up.
    auto drained = std::make_shared<std::promise<void>>();
    homes.push_back(drained->get_future());
    worker->post(
        [&home = worker->home(), drained] { home.drain([drained] { drained->set_value(); }); });
  }
  const auto until = std::chrono::steady_clock::now() + kStopTimeout;
  const auto in_time = [&](const std::future<void>& home) {
    while (!store_failed && std::chrono::steady_clock::now() < until) {
      if (home.wait_for(kStopPoll) == std::future_status::ready) return true;
    }
    return false;
  };
  if (!std::all_of(homes.begin(), homes.end(), in_time) && !store_failed) {
    log::error("the store did not take everything in time; it will recover at the next start");
  }
}

void Server::Impl::stop() {
  if (!running) return;
  running = false;
  listener->stop();
  door->stop();
  alarms->stop();
  for (const auto& worker : workers) {
    ask(*worker, [&] { worker->close_all(kShutdownText); });
  }
  if (!wait_for_connections(kStopTimeout)) {
    for (const auto& worker : workers) {
      ask(*worker, [&] { worker->drop_all(); });
    }
    wait_for_connections(kStopTimeout);
  }
  drain_homes();
  std::vector<store::QueueNumbers> numbers;
  for (const auto& worker : workers) {
    const auto exact = ask(*worker, [&] { return worker->home().exact_numbers(); });
    numbers.insert(numbers.end(), exact.begin(), exact.end());
  }
  for (const auto& worker : workers) worker->stop();
  for (const auto& worker : workers) worker->join();
  store->close(numbers);
  log::info("stopped");
}

Server::Server(Config config) : impl_(std::make_unique<Impl>(std::move(config))) {}

Server::~Server() {
  impl_->stop();
}

void Server::start() {
  impl_->start();
}

void Server::stop() {
  impl_->stop();
}

void Server::on_fatal(std::function<void(const std::string&)> handler) {
  impl_->on_fatal = std::move(handler);
}

std::uint16_t Server::amqp_port() const {
  return impl_->listener ? impl_->listener->port() : 0;
}

std::uint16_t Server::admin_port() const {
  return impl_->door ? impl_->door->port() : 0;
}

}  // namespace stoat::broker
