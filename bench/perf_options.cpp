#include "bench/perf_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

namespace stoat::bench {
namespace {

constexpr int kBadUsage = 2;
constexpr int kMost = 100'000;  // of producers, consumers and queues
constexpr std::size_t kMaxShortStringBytes = 255;
constexpr std::size_t kMaxNameBytes = 200;  // leaves room for what is added to it

// What the command line has that is not an option as it stands.
struct Raw {
  std::string uri = "amqp://localhost";
  std::vector<std::string> queue_arguments;
  std::vector<std::string> flags;
  bool auto_ack = false, transient = false, fill = false, drain = false;
};

// A whole number and a boolean by their look, anything else as text.
wire::FieldValue value_of(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && at == end && !text.empty()) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

void add_load_options(CLI::App& app, PerfOptions& options, Raw& raw) {
  app.add_option("-x,--producers", options.producers)->check(CLI::Range(0, kMost));
  app.add_option("-y,--consumers", options.consumers)->check(CLI::Range(0, kMost));
  app.add_option("-s,--size", options.size_bytes, "bytes of a body")
      ->check(CLI::Range(std::size_t{0}, std::size_t{128} << 20))
      ->capture_default_str();
  app.add_option("-r,--rate", options.rate, "messages a second and producer; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-c,--confirm", options.confirm, "unconfirmed publishes a producer; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("-p,--prefetch", options.prefetch, "0: no limit")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  app.add_option("-a,-A,--ack-every,--multi-ack-every", options.ack_every,
                 "deliveries an ack; 0: no acks")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  app.add_flag("--auto-ack", raw.auto_ack, "as --ack-every 0");
  app.add_option("-f,--flag", raw.flags, "persistent (the default) or mandatory")
      ->check(CLI::IsMember({"persistent", "mandatory"}));
  app.add_flag("--transient", raw.transient, "messages that need no disk");
}

void add_topology_options(CLI::App& app, PerfOptions& options, Raw& raw) {
  app.add_option("-q,--queues", options.queues, "producers and consumers take them in turn")
      ->check(CLI::Range(1, kMost));
  app.add_option("-u,--queue", options.queue, "name, before -0, -1…")->capture_default_str();
  app.add_option("--queue-args", raw.queue_arguments, "key=value,… to declare the queues with")
      ->delimiter(',');
  app.add_option("-t,--type,--exchange-type", options.exchange_type,
                 "publish through an exchange of this type; without it, the default exchange")
      ->check(CLI::IsMember({"direct", "fanout", "topic", "headers"}));
  app.add_option("-e,--exchange", options.exchange, "its name; by default made of the queue's");
  app.add_option("--bindings", options.bindings, "further bindings that match nothing")
      ->check(CLI::Range(0, 10'000'000));
  app.add_flag("--keep", options.keep, "leave queues and exchange when done");
}

void add_run_options(CLI::App& app, PerfOptions& options, Raw& raw) {
  app.add_option("uri,--uri", raw.uri, "the broker")->capture_default_str();
  app.add_option("-z,--seconds,--time", options.seconds)->check(CLI::PositiveNumber);
  app.add_option("-C,--pmessages", options.messages, "messages a producer, instead of a time");
  app.add_flag("--fill", raw.fill, "only produce, and keep the queues");
  app.add_flag("--drain", raw.drain, "only consume what the queues hold");
  app.add_option("--wait-seconds", options.wait_seconds,
                 "without progress until what is missing counts as lost")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("-i,--interval", options.interval_seconds, "seconds between progress lines")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--producer-threads", options.producer_threads)->check(CLI::Range(1, 256));
  app.add_option("--consumer-threads", options.consumer_threads)->check(CLI::Range(1, 256));
  app.add_option("--pid", options.broker_pid, "the broker's process, for its CPU time and memory")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "all figures as one JSON object on the last line");
  app.add_option("--idle-connections", options.idle_connections,
                 "only open so many, a channel on each, until the input ends or a signal comes")
      ->check(CLI::PositiveNumber);
  app.add_option("--declare-queues", options.declare_queues, "only declare so many durable queues")
      ->check(CLI::PositiveNumber);
}

// Empty, or why these cannot go together.
std::string mistake_in(const PerfOptions& options, const Raw& raw) {
  if (options.prefetch != 0 && options.ack_every > options.prefetch)
    return "--ack-every must not exceed --prefetch";
  if (raw.fill && raw.drain) return "--fill and --drain exclude each other";
  if (options.bindings > 0 && options.exchange_type.empty())
    return "--bindings needs --exchange-type";
  if (!options.exchange.empty() && options.exchange_type.empty())
    return "--exchange needs --exchange-type";
  if (options.queue.empty() || options.queue.size() > kMaxNameBytes ||
      options.exchange.size() > kMaxNameBytes)
    return "a name is too long or empty";
  for (const std::string& argument : raw.queue_arguments) {
    const auto equals = argument.find('=');
    if (equals == std::string::npos || equals == 0 || equals > kMaxShortStringBytes)
      return "--queue-args wants key=value";
  }
  return {};
}

}  // namespace

std::optional<PerfOptions> parse_perf_options(int argc, char** argv, int* exit_status) {
  PerfOptions options;
  Raw raw;
  CLI::App app(
      "Load generator for AMQP 0-9-1 brokers. Ends with status 1 when a message was refused, "
      "returned, lost, duplicated or out of order.");
  add_load_options(app, options, raw);
  add_topology_options(app, options, raw);
  add_run_options(app, options, raw);
  std::string mistake;
  try {
    app.parse(argc, argv);
    options.uri = client::Uri::parse(raw.uri);
  } catch (const CLI::ParseError& error) {
    *exit_status = app.exit(error) == 0 ? 0 : kBadUsage;
    return std::nullopt;
  } catch (const std::exception& error) {
    mistake = error.what();
  }
  if (raw.auto_ack) options.ack_every = 0;
  // The default gives way to a small prefetch; what was asked for does not.
  if (app.count("--ack-every") == 0 && options.prefetch != 0)
    options.ack_every = std::min(options.ack_every, options.prefetch);
  if (mistake.empty()) mistake = mistake_in(options, raw);
  if (!mistake.empty()) {
    std::fprintf(stderr, "stoat-perf: %s\n", mistake.c_str());
    *exit_status = kBadUsage;
    return std::nullopt;
  }
  for (const std::string& argument : raw.queue_arguments) {
    const auto equals = argument.find('=');
    options.queue_arguments.set(argument.substr(0, equals), value_of(argument.substr(equals + 1)));
  }
  options.persistent = !raw.transient;
  options.mandatory = std::find(raw.flags.begin(), raw.flags.end(), "mandatory") != raw.flags.end();
  if (raw.fill) options.phase = PerfOptions::Phase::fill;
  if (raw.drain) options.phase = PerfOptions::Phase::drain;
  if (!options.exchange_type.empty() && options.exchange.empty())
    options.exchange = options.queue + '-' + options.exchange_type;
  return options;
}

}  // namespace stoat::bench
