#include "broker/admin/operations.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <chrono>
#include <filesystem>

#include "broker/admin/operations_impl.hpp"
#include "broker/admin/publisher.hpp"
#include "broker/admin/rights.hpp"
#include "broker/alarms.hpp"
#include "broker/control.hpp"
#include "broker/handshake.hpp"
#include "broker/password.hpp"
#include "broker/publish_checks.hpp"
#include "broker/reply_address.hpp"

namespace stoat::broker::admin {

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kMaxShortStringBytes = 255;
// A content header frame beside its properties: frame header and end, class, weight, body size.
constexpr std::size_t kContentHeaderBytes = 8 + 12;

std::string make_node_name() {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  return "stoat@" + std::string(host);
}

}  // namespace

Operations::Operations(std::vector<Worker*> workers, std::uint16_t amqp_port,
                       std::function<void()> on_publish)
    : workers_(std::move(workers)),
      amqp_port_(amqp_port),
      node_name_(make_node_name()),
      started_at_(std::chrono::steady_clock::now()),
      publisher_(std::make_unique<Publisher>(*workers_.front(), std::move(on_publish))) {}

Operations::~Operations() = default;

void Operations::start() {
  publisher_->start();
}

void Operations::stop() {
  stopped_ = true;
  for (asio::steady_timer* delay : login_delays_) delay->cancel();
  publisher_->stop();
}

asio::awaitable<void> Operations::check_ready() {
  for (Worker* worker : workers_) {
    auto answer = [] {};
    co_await run_on(*worker, std::move(answer));
  }
}

// --- login ---

std::chrono::milliseconds Operations::login_timeout() const {
  return std::chrono::milliseconds(control_worker().config().handshake_timeout_ms);
}

asio::awaitable<Caller> Operations::log_in(std::string user, std::string password,
                                           bool peer_is_loopback) {
  auto find = [topology = &control_worker().control().topology(), user] {
    const auto found = topology->users().find(user);
    return found == topology->users().end() ? std::optional<UserDef>() : found->second;
  };
  const std::optional<UserDef> known = co_await run_on(control_worker(), std::move(find));
  std::string why;
  if (!known || !password_matches(password, known->password_hash, known->hashing_algorithm)) {
    why = "wrong user name or password";
  } else if (user == kLoopbackOnlyUser && !peer_is_loopback) {
    why = "user '" + user + "' may only log in from the loopback interface";
  } else if (!is_admin_user(*known)) {
    why = "user '" + user +
          "' has none of the tags administrator, monitoring, policymaker and "
          "management";
  }
  if (why.empty()) co_return Caller{user, known->tags};
  const std::chrono::milliseconds pause(control_worker().config().login_failure_delay_ms);
  asio::steady_timer delay(co_await asio::this_coro::executor, pause);
  if (!stopped_) {
    login_delays_.insert(&delay);
    co_await delay.async_wait(kAwait);
    login_delays_.erase(&delay);
  }
  throw Refusal(RefusalCode::not_logged_in, why);
}

// --- overview ---

asio::awaitable<Overview> Operations::overview(Caller caller) {
  const auto count = [topology = &control_worker().control().topology(), user = caller.user] {
    const Rights rights = rights_of(*topology, user);
    Overview overview;
    if (rights.everything) {
      overview.node.emplace();
      overview.vhosts = topology->vhosts().size();
      overview.exchanges = topology->exchanges().size();
    } else {
      overview.vhosts = rights.vhosts.size();
      for (const auto& [place, exchange] : topology->exchanges()) {
        if (rights.may_see(exchange.vhost)) overview.exchanges += 1;
      }
    }
    // The default exchange, which is not among those, is one more in each vhost.
    overview.exchanges += overview.vhosts;
    return overview;
  };
  Overview overview = co_await ask(control_worker(), count);
  if (overview.node) {
    co_await add_whole_broker(overview);
    co_return overview;
  }
  QueueWalk walk;
  walk.user = caller.user;
  while (!walk.finished) {
    const std::vector<QueueInfo> slice = co_await next_slice(walk);
    overview.queues += slice.size();
    for (const QueueInfo& queue : slice) {
      overview.consumers += queue.stats.consumers;
      overview.ready += queue.stats.ready;
      overview.unacked += queue.stats.unacked;
      overview.published += queue.stats.published;
      overview.delivered += queue.stats.delivered;
      overview.acked += queue.stats.acked;
    }
  }
  co_return overview;
}

asio::awaitable<void> Operations::add_whole_broker(Overview& overview) {
  struct Share {
    HomeStats home;
    std::size_t channels = 0;
    std::string alarm;
  };
  NodeInfo& node = *overview.node;
  for (Worker* worker : workers_) {
    auto read = [worker] {
      return Share{worker->home().stats(), worker->channel_count(), worker->alarm()};
    };
    const Share share = co_await run_on(*worker, std::move(read));
    overview.queues += share.home.queues;
    overview.consumers += share.home.consumers;
    overview.ready += share.home.ready;
    overview.unacked += share.home.unacked;
    overview.published += share.home.published;
    overview.delivered += share.home.delivered;
    overview.acked += share.home.acked;
    node.puts_written += share.home.puts_written;
    node.puts_elided += share.home.puts_elided;
    node.connections += worker->connection_count();
    node.channels += share.channels;
    node.alarm = share.alarm;
  }
  const Config& config = control_worker().config();
  node.name = node_name_;
  node.uptime_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::steady_clock::now() - started_at_)
                                                  .count());
  node.memory_used_bytes = memory_used_bytes();
  node.memory_limit_bytes = static_cast<std::uint64_t>(static_cast<double>(memory_total_bytes()) *
                                                       config.memory_alarm_fraction);
  std::error_code error;
  const auto space = std::filesystem::space(config.data_dir, error);
  if (!error) node.disk_free_bytes = space.available;
  node.disk_free_limit_bytes = config.disk_alarm_free_mb * 1'000'000;
  node.listen_address = config.bind;
  node.amqp_port = amqp_port_;
}

const Overview* Operations::find_sample(const std::string& key) const {
  const auto found = samples_.find(key);
  const auto oldest = std::chrono::steady_clock::now() - kSampleAge;
  return found != samples_.end() && found->second.taken_at >= oldest ? &found->second.overview
                                                                     : nullptr;
}

asio::awaitable<Overview> Operations::recent_overview(Caller caller) {
  const auto see_all = [topology = &control_worker().control().topology(), user = caller.user] {
    return rights_of(*topology, user).everything;
  };
  const bool sees_all = co_await ask(control_worker(), see_all);
  const std::string key = sees_all ? std::string() : caller.user;
  for (;;) {
    if (const Overview* sample = find_sample(key)) co_return *sample;
    if (!sampling_) break;
    const auto mine =
        std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, SteadyTime::max());
    waiting_for_sample_.push_back(mine);
    co_await mine->async_wait(kAwait);
  }
  // Wakes the others, also when sampling fails.
  struct Sampling {
    explicit Sampling(Operations& o) : operations(o) { operations.sampling_ = true; }
    ~Sampling() {
      operations.sampling_ = false;
      for (const auto& waiting : operations.waiting_for_sample_) waiting->cancel();
      operations.waiting_for_sample_.clear();
    }
    Operations& operations;
  };
  const Sampling sampling(*this);
  Overview overview = co_await this->overview(std::move(caller));
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(samples_, [&](const auto& one) { return one.second.taken_at < now - kSampleAge; });
  samples_[key] = {now, overview};
  co_return overview;
}

// --- publish ---

asio::awaitable<bool> Operations::publish(Caller caller, PublishRequest request) {
  const Config& config = control_worker().config();
  const auto refuse_if = [](bool mistaken, std::string why) {
    if (mistaken) throw Refusal(RefusalCode::precondition_failed, std::move(why));
  };
  refuse_if(request.exchange.size() > kMaxShortStringBytes, "the exchange's name is too long");
  refuse_if(request.routing_key.size() > kMaxShortStringBytes, "the routing key is too long");
  refuse_if(request.payload.size() > config.max_message_bytes,
            "message size " + std::to_string(request.payload.size()) +
                " is larger than configured max size " + std::to_string(config.max_message_bytes));
  refuse_if(request.properties.reply_to == kReplyQueueName, "fast reply consumer does not exist");

  Publisher::Request publish{caller.user, request.vhost, nullptr, {}};
  if (request.properties.headers) {
    const std::string mistake = read_extra_keys(*request.properties.headers, publish.extra_keys);
    refuse_if(!mistake.empty(), mistake);
    request.properties.headers->erase(kBccHeader);
  }
  const std::string properties = request.properties.encode();
  const wire::PropertiesView view(properties);
  refuse_if(!view.ok(), "malformed message properties");
  refuse_if(properties.size() + kContentHeaderBytes > config.frame_max,
            "the message's properties do not fit a frame");
  const std::string mistake = check_properties(view, caller.user, caller.tags);
  refuse_if(!mistake.empty(), mistake);

  MessageBuilder builder;
  builder.start(request.exchange, request.routing_key, properties, view.persistent(),
                SystemClock().wall_now(), request.payload.size(), request.payload.size());
  builder.append(request.payload);
  publish.message = builder.finish();

  using Answer = std::variant<bool, Refusal>;
  const auto guarded = [](Publisher& publisher, Publisher::Request r) -> asio::awaitable<Answer> {
    try {
      co_return co_await publisher.publish(std::move(r));
    } catch (const Refusal& refusal) {
      co_return refusal;
    }
  };
  auto there = guarded(*publisher_, std::move(publish));
  co_return value_or_throw(
      co_await asio::co_spawn(publisher_->worker().io(), std::move(there), asio::use_awaitable));
}

}  // namespace stoat::broker::admin
