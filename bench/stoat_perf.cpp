// stoat-perf: a load generator for AMQP 0-9-1 brokers, in the manner of RabbitMQ's PerfTest.
//
//   stoat-perf amqp://localhost --producers 2 --consumers 2 --size 1024 --seconds 10
//
// Everything runs on one thread, which at high rates is what limits it. Prints a line a second and
// a summary; ends with status 1 when a message was refused, returned or lost.
#include <stoat/client/connection.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "bench/latency_histogram.hpp"

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace stoat::client;
using Clock = std::chrono::steady_clock;

constexpr auto kPoll = 10ms;  // how often a part looks whether others have ended

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct Settings {
  std::string uri = "amqp://localhost";
  int producers = 1;
  int consumers = 1;
  int queues = 1;
  std::string queue = "stoat-perf";
  std::size_t size_bytes = 1024;
  double rate = 0;     // messages a second and producer; 0: as fast as it goes
  int confirm = 500;   // unconfirmed publishes a producer may have; 0: without confirms
  int prefetch = 500;  // 0: no limit
  int ack_every = 10;  // 0: no acks
  double seconds = 10;
  bool transient = false;
  bool keep = false;

  std::string queue_name(int index) const { return queue + '-' + std::to_string(index % queues); }
};

struct Counters {
  std::uint64_t sent = 0, confirmed = 0, refused = 0, received = 0;
};

// One run: its settings, what is counted, and when it ends.
//
// Thread: the one that runs the io_context.
class Run {
 public:
  explicit Run(Settings settings) : settings_(std::move(settings)) {}
  int run();

 private:
  asio::awaitable<void> control();
  asio::awaitable<void> set_up();
  asio::awaitable<void> produce(int index);
  asio::awaitable<void> publish_loop(Channel& channel, std::string queue, Clock::time_point* due);
  asio::awaitable<void> consume(int index);
  asio::awaitable<void> drain();
  asio::awaitable<void> sleep_until(Clock::time_point time);
  void start(asio::awaitable<void> part, int* running);
  asio::awaitable<void> tear_down();
  void print_second();
  void print_summary(const Counters& counted, double seconds) const;

  const Settings settings_;
  asio::io_context io_{1};
  asio::signal_set stop_waiting_{io_, SIGINT, SIGTERM};  // ends the run early
  bool producing_ = true;
  bool consuming_ = true;
  int producers_running_ = 0;
  int consumers_running_ = 0;
  std::exception_ptr failure_;
  Counters total_, last_second_;
  stoat::bench::LatencyHistogram confirm_latency_, delivery_latency_, second_latency_;
};

asio::awaitable<void> Run::sleep_until(Clock::time_point time) {
  asio::steady_timer timer(io_, time);
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

// Runs a part of its own and counts it in *running; the first failure ends the run.
void Run::start(asio::awaitable<void> part, int* running) {
  ++*running;
  asio::co_spawn(io_, std::move(part), [this, running](std::exception_ptr error) {
    --*running;
    if (!error) return;
    if (!failure_) failure_ = error;
    producing_ = consuming_ = false;
  });
}

asio::awaitable<void> Run::set_up() {
  auto connection = co_await Connection::connect(settings_.uri);
  auto channel = co_await connection.open_channel();
  for (int i = 0; i < settings_.queues; ++i) {
    const std::string name = settings_.queue_name(i);
    co_await channel.declare_queue(name, {.durable = true});
    co_await channel.purge_queue(name);
  }
  co_await connection.close();
}

asio::awaitable<void> Run::tear_down() {
  auto connection = co_await Connection::connect(settings_.uri);
  auto channel = co_await connection.open_channel();
  for (int i = 0; i < settings_.queues; ++i) co_await channel.delete_queue(settings_.queue_name(i));
  co_await connection.close();
}

// The body begins with the time the message was due, so that a broker that falls behind an asked
// rate shows in the latency.
asio::awaitable<void> Run::publish_loop(Channel& channel, std::string queue,
                                        Clock::time_point* due) {
  const auto interval =
      settings_.rate > 0 ? duration_of(1 / settings_.rate) : Clock::duration::zero();
  while (producing_) {
    Clock::time_point sent_at = Clock::now();
    if (interval != Clock::duration::zero()) {
      sent_at = *due;
      *due += interval;
      if (sent_at > Clock::now()) co_await sleep_until(sent_at);
      if (!producing_) break;
    }
    std::string body(settings_.size_bytes, 'x');
    const std::int64_t stamp = sent_at.time_since_epoch().count();
    std::memcpy(body.data(), &stamp, sizeof stamp);
    Message message(std::move(body));
    message.properties.delivery_mode = settings_.transient ? kTransient : kPersistent;
    ++total_.sent;
    if (settings_.confirm == 0) {
      co_await channel.publish_unconfirmed("", queue, std::move(message));
      continue;
    }
    const PublishResult result = co_await channel.publish("", queue, std::move(message));
    if (!result.acked()) {
      ++total_.refused;
      continue;
    }
    ++total_.confirmed;
    confirm_latency_.record(Clock::now() - sent_at);
  }
}

asio::awaitable<void> Run::produce(int index) {
  ConnectionOptions options("stoat-perf producer");
  options.max_unconfirmed = static_cast<std::size_t>(std::max(settings_.confirm, 1));
  auto connection = co_await Connection::connect(settings_.uri, std::move(options));
  auto channel = co_await connection.open_channel();
  // As many loops as publishes may be without a confirm; each waits for its own.
  Clock::time_point due = Clock::now();
  int loops = 0;
  for (int i = 0; i < std::max(settings_.confirm, 1); ++i)
    start(publish_loop(channel, settings_.queue_name(index), &due), &loops);
  while (loops > 0) co_await sleep_until(Clock::now() + kPoll);
  if (connection.is_open()) co_await connection.close();
}

asio::awaitable<void> Run::consume(int index) {
  auto connection =
      co_await Connection::connect(settings_.uri, ConnectionOptions("stoat-perf consumer"));
  auto channel = co_await connection.open_channel();
  co_await channel.qos(static_cast<std::uint16_t>(settings_.prefetch));
  auto consumer =
      co_await channel.consume(settings_.queue_name(index), {.no_ack = settings_.ack_every == 0});
  std::optional<Delivery> newest;  // acked with all before it
  int unacked = 0;
  const auto ack = [&] {
    if (unacked > 0) channel.ack(*newest, {.multiple = true});
    unacked = 0;
  };
  while (consuming_) {
    auto delivery = co_await consumer.next_for(100ms);
    if (!delivery) {
      ack();
      continue;
    }
    ++total_.received;
    std::int64_t stamp = 0;
    if (delivery->body.size() >= sizeof stamp)
      std::memcpy(&stamp, delivery->body.data(), sizeof stamp);
    const auto latency = Clock::now() - Clock::time_point(Clock::duration(stamp));
    delivery_latency_.record(latency);
    second_latency_.record(latency);
    if (settings_.ack_every == 0) continue;
    newest = std::move(delivery);
    if (++unacked >= settings_.ack_every) ack();
  }
  ack();
  co_await connection.close();
}

// Until everything that was sent has arrived, or nothing arrives for a second.
asio::awaitable<void> Run::drain() {
  std::uint64_t before = total_.received;
  auto last_progress = Clock::now();
  while (total_.received < total_.sent - total_.refused && Clock::now() - last_progress < 1s) {
    co_await sleep_until(Clock::now() + kPoll);
    if (total_.received != before) last_progress = Clock::now();
    before = total_.received;
  }
}

asio::awaitable<void> Run::control() {
  co_await set_up();
  for (int i = 0; i < settings_.consumers; ++i) start(consume(i), &consumers_running_);
  for (int i = 0; i < settings_.producers; ++i) start(produce(i), &producers_running_);

  const auto begin = Clock::now();
  const auto end = begin + duration_of(settings_.seconds);
  for (auto second = begin + 1s; producing_ && Clock::now() < end; second += 1s) {
    while (producing_ && Clock::now() < std::min(second, end))
      co_await sleep_until(Clock::now() + kPoll);
    if (Clock::now() >= second) print_second();
  }
  producing_ = false;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const Counters counted = total_;
  while (producers_running_ > 0) co_await sleep_until(Clock::now() + kPoll);
  if (settings_.consumers > 0 && !failure_) co_await drain();
  consuming_ = false;
  while (consumers_running_ > 0) co_await sleep_until(Clock::now() + kPoll);
  stop_waiting_.cancel();
  if (failure_) std::rethrow_exception(failure_);
  if (!settings_.keep) co_await tear_down();
  print_summary(counted, seconds);
}

void Run::print_second() {
  std::printf("sent %llu, confirmed %llu, received %llu; delivery ms p50 %.3f p99 %.3f\n",
              static_cast<unsigned long long>(total_.sent - last_second_.sent),
              static_cast<unsigned long long>(total_.confirmed - last_second_.confirmed),
              static_cast<unsigned long long>(total_.received - last_second_.received),
              second_latency_.percentile_ms(50), second_latency_.percentile_ms(99));
  std::fflush(stdout);
  last_second_ = total_;
  second_latency_.clear();
}

void Run::print_summary(const Counters& counted, double seconds) const {
  const auto rate = [&](std::uint64_t count) { return static_cast<double>(count) / seconds; };
  std::printf("in %.1f s: sent %.0f/s, confirmed %.0f/s, received %.0f/s\n", seconds,
              rate(counted.sent), rate(counted.confirmed), rate(counted.received));
  const auto print = [](const char* what, const stoat::bench::LatencyHistogram& latency) {
    if (latency.count() == 0) return;
    std::printf("%s ms: p50 %.3f, p95 %.3f, p99 %.3f, p99.9 %.3f, max %.3f\n", what,
                latency.percentile_ms(50), latency.percentile_ms(95), latency.percentile_ms(99),
                latency.percentile_ms(99.9), latency.max_ms());
  };
  print("confirm", confirm_latency_);
  print("delivery", delivery_latency_);
  std::printf("%llu sent, %llu received, %llu refused, returned or lost\n",
              static_cast<unsigned long long>(total_.sent),
              static_cast<unsigned long long>(total_.received),
              static_cast<unsigned long long>(total_.refused));
}

int Run::run() {
  stop_waiting_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) producing_ = false;
  });
  std::exception_ptr outcome;
  asio::co_spawn(io_, control(), [&outcome, this](std::exception_ptr error) {
    outcome = error;
    if (error) io_.stop();
  });
  io_.run();
  if (outcome) std::rethrow_exception(outcome);
  return total_.refused == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings settings;
  CLI::App app("Load generator for AMQP 0-9-1 brokers");
  app.add_option("uri", settings.uri, "the broker")->capture_default_str();
  app.add_option("-x,--producers", settings.producers)->check(CLI::Range(0, 10'000));
  app.add_option("-y,--consumers", settings.consumers)->check(CLI::Range(0, 10'000));
  app.add_option("-q,--queues", settings.queues, "producers and consumers take them in turn")
      ->check(CLI::Range(1, 10'000));
  app.add_option("-u,--queue", settings.queue, "name, before -0, -1…")->capture_default_str();
  app.add_option("-s,--size", settings.size_bytes, "bytes of a body")
      ->check(CLI::Range(sizeof(std::int64_t), std::size_t{128} << 20))
      ->capture_default_str();
  app.add_option("-r,--rate", settings.rate, "messages a second and producer; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-c,--confirm", settings.confirm, "unconfirmed publishes a producer; 0: none")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  app.add_option("-p,--prefetch", settings.prefetch, "0: no limit")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  app.add_option("-a,--ack-every", settings.ack_every, "deliveries an ack; 0: no acks")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  app.add_option("-z,--seconds", settings.seconds)->check(CLI::PositiveNumber);
  app.add_flag("--transient", settings.transient, "messages that need no disk");
  app.add_flag("--keep", settings.keep, "leave the queues when done");
  CLI11_PARSE(app, argc, argv);
  if (settings.prefetch != 0 && settings.ack_every > settings.prefetch) {
    std::fprintf(stderr, "stoat-perf: --ack-every must not exceed --prefetch\n");
    return 2;
  }
  return Run(std::move(settings)).run();
} catch (const std::exception& error) {
  std::fprintf(stderr, "stoat-perf: %s\n", error.what());
  return 1;
}
