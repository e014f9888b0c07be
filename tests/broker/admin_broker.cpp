#include "tests/broker/admin_broker.hpp"

#include <future>

#include "broker/password.hpp"

namespace stoat::test {

namespace {

using namespace broker;

UserDef user(const std::string& name, std::vector<std::string> tags) {
  return {name, hash_password(name), std::string(kSha256Algorithm), std::move(tags)};
}

std::vector<Worker*> list(const std::vector<std::unique_ptr<Worker>>& workers) {
  std::vector<Worker*> all;
  for (const auto& worker : workers) all.push_back(worker.get());
  return all;
}

std::vector<std::unique_ptr<Worker>> make_workers(std::uint32_t count, const Config& config,
                                                  store::Store& store, const Clock& clock) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<Worker>(WorkerIndex(i), config, store, clock));
  }
  return workers;
}

Config make_config() {
  Config config;
  config.login_failure_delay_ms = 0;
  return config;
}

}  // namespace

AdminBroker::AdminBroker(std::uint32_t worker_count)
    : config_(make_config()),
      store_(store::make_memory_store()),
      workers_(make_workers(worker_count, config_, *store_, clock_)),
      worker_list_(list(workers_)),
      control_(*store_, worker_list_),
      operations_(worker_list_, 5672, [this] { ++publishes_announced_; }) {
  for (Worker* worker : worker_list_) worker->connect(worker_list_, control_);
  control_.recover(store_->recover());
  for (Worker* worker : worker_list_) worker->start();
  operations_.start();
  await(control_.call(control_.set_defaults()));
  Definitions definitions;
  definitions.vhosts.push_back({"other"});
  definitions.users = {user("ops", {"monitoring"}), user("lena", {"management"}), user("app", {})};
  definitions.permissions = {{"lena", "other", "", "^l", ""}, {"app", "/", ".*", ".*", ".*"}};
  import(std::move(definitions));
}

AdminBroker::~AdminBroker() {
  operations_.stop();
  for (Worker* worker : worker_list_) worker->stop();
  for (Worker* worker : worker_list_) worker->join();
  store_->close({});  // its last completions still post to the workers
}

void AdminBroker::import(Definitions definitions) {
  await(control_.call(control_.import(std::move(definitions))));
}

void AdminBroker::declare(const std::string& vhost, const std::string& queue,
                          wire::Table arguments) {
  QueueDef wanted;
  wanted.spec.vhost = vhost;
  wanted.spec.name = queue;
  wanted.spec.durable = true;
  wanted.spec.arguments = std::move(arguments);
  // Homes in turn, so that lists and fan-outs go to all of them.
  wanted.home =
      WorkerIndex(static_cast<std::uint32_t>(std::hash<std::string>()(queue) % workers_.size()));
  await(control_.call(control_.declare_queue(std::move(wanted), ConnectionId(1))));
}

void AdminBroker::bind(const std::string& vhost, const std::string& exchange,
                       const std::string& queue, const std::string& key, wire::Table arguments) {
  BindingDef binding{vhost, exchange, DestinationKind::queue, queue, key, std::move(arguments)};
  await(control_.call(control_.bind(std::move(binding), ConnectionId(1))));
}

MessagePtr AdminBroker::take(const std::string& vhost, const std::string& queue) {
  std::promise<std::pair<QueueId, WorkerIndex>> found;
  worker_list_[0]->post([&] {
    const QueueDef* def = control_.topology().find_queue(vhost, queue);
    found.set_value({def->spec.id, worker_list_[0]->home_of(def->spec.id)});
  });
  const auto [id, home] = found.get_future().get();
  Worker& worker = *worker_list_[home.value];
  std::promise<MessagePtr> taken;
  worker.post([&, id = id] {
    worker.home().get(id, [&, id](Got got) {
      if (got.message) {
        ToHome batch;
        batch.settles.push_back({id, got.position.stream, SettleKind::ack, got.position.sequence,
                                 got.position.sequence});
        worker.home().take(ConnectionId(2), worker.index(), batch);
      }
      taken.set_value(got.message);
    });
  });
  return taken.get_future().get();
}

void AdminBroker::set_alarm(const std::string& reason) {
  for (Worker* worker : worker_list_) worker->set_alarm(reason);
}

}  // namespace stoat::test
