#include "bench/perf_topology.hpp"

#include <algorithm>

#include "wire/exchange.hpp"
#include "wire/properties.hpp"
#include "wire/queue.hpp"

namespace stoat::bench {
namespace {

namespace exchange = wire::exchange;
namespace queue = wire::queue;

constexpr int kPipelined = 256;  // requests in flight

// Sends request(i) for i below count, some at a time, and awaits an Ok for each.
template <class Ok, class Request>
void pipeline(PerfConnection& connection, int count, Request request) {
  for (int begin = 0; begin < count; begin += kPipelined) {
    const int end = std::min(count, begin + kPipelined);
    for (int i = begin; i < end; ++i) request(i);
    connection.flush_waiting();
    connection.await(Ok::kId, static_cast<std::size_t>(end - begin));
  }
}

std::string binding_key(const PerfOptions& options, int index) {
  const std::string number = std::to_string(index);
  if (options.exchange_type == "topic") return "perf.*." + number + ".#";
  return options.exchange_type == "direct" ? options.queue_name(index) : std::string();
}

wire::Table binding_arguments(const PerfOptions& options, int index) {
  if (options.exchange_type != "headers") return {};
  return {{"x-match", "all"}, {"queue", static_cast<std::int32_t>(index)}};
}

void bind(const PerfOptions& options, PerfConnection& connection) {
  exchange::Declare declare;
  declare.exchange = options.exchange;
  declare.type = options.exchange_type;
  declare.durable = true;
  connection.call<exchange::DeclareOk>(declare);

  const auto write_bind = [&](const std::string& to, const std::string& key, wire::Table with) {
    queue::Bind bind;
    bind.queue = to;
    bind.exchange = options.exchange;
    bind.routing_key = key;
    bind.arguments = std::move(with);
    connection.write(bind);
  };
  pipeline<queue::BindOk>(connection, options.queues, [&](int i) {
    write_bind(options.queue_name(i), binding_key(options, i), binding_arguments(options, i));
  });
  // These share the first word of the keys that match, then part from them.
  pipeline<queue::BindOk>(connection, options.bindings, [&](int i) {
    const std::string key = "perf.other" + std::to_string(i) + ".*.x" + std::to_string(7 * i);
    wire::Table with;
    if (options.exchange_type == "headers")
      with = {{"x-match", "all"}, {"queue", static_cast<std::int32_t>(-1 - i)}};
    write_bind(options.queue_name(i % options.queues), key + ".#", std::move(with));
  });
}

}  // namespace

std::vector<PerfDestination> destinations_of(const PerfOptions& options, int producer) {
  wire::Properties properties;
  if (options.persistent) properties.delivery_mode = 2;
  if (options.exchange_type == "fanout") return {{options.exchange, "", properties.encode()}};
  std::vector<PerfDestination> destinations;
  for (int i = producer % options.queues; i < options.queues; i += options.producers) {
    std::string key = options.queue_name(i);
    if (options.exchange_type == "topic")
      key = "perf.p" + std::to_string(producer) + '.' + std::to_string(i) + ".x.y";
    if (options.exchange_type == "headers")
      properties.headers = wire::Table{{"queue", static_cast<std::int32_t>(i)}};
    destinations.push_back({options.exchange, std::move(key), properties.encode()});
  }
  return destinations;
}

std::vector<int> queues_of(const PerfOptions& options, int consumer) {
  std::vector<int> queues;
  for (int i = consumer % options.queues; i < options.queues; i += options.consumers)
    queues.push_back(i);
  return queues;
}

void set_up(const PerfOptions& options, PerfConnection& connection) {
  declare_queues(options, connection, options.queues);
  if (options.phase != PerfOptions::Phase::drain) {
    pipeline<queue::PurgeOk>(connection, options.queues, [&](int i) {
      const std::string name = options.queue_name(i);
      queue::Purge purge;
      purge.queue = name;
      connection.write(purge);
    });
  }
  if (!options.exchange_type.empty()) bind(options, connection);
}

void tear_down(const PerfOptions& options, PerfConnection& connection) {
  pipeline<queue::DeleteOk>(connection, options.queues, [&](int i) {
    const std::string name = options.queue_name(i);
    queue::Delete remove;
    remove.queue = name;
    connection.write(remove);
  });
  if (options.exchange_type.empty()) return;
  exchange::Delete remove;
  remove.exchange = options.exchange;
  connection.call<exchange::DeleteOk>(remove);
}

std::uint64_t depth_of(const PerfOptions& options, PerfConnection& connection) {
  std::uint64_t depth = 0;
  for (int i = 0; i < options.queues; ++i) {
    const std::string name = options.queue_name(i);
    queue::Declare declare;
    declare.queue = name;
    declare.passive = true;
    const std::string payload = connection.call<queue::DeclareOk>(declare);
    const auto ok = wire::decode_method<queue::DeclareOk>(payload);
    if (!ok) throw PerfError("a malformed queue.declare-ok");
    depth += ok->message_count;
  }
  return depth;
}

void declare_queues(const PerfOptions& options, PerfConnection& connection, int count) {
  pipeline<queue::DeclareOk>(connection, count, [&](int i) {
    const std::string name = options.queue_name(i);
    queue::Declare declare;
    declare.queue = name;
    declare.durable = true;
    declare.arguments = options.queue_arguments;
    connection.write(declare);
  });
}

}  // namespace stoat::bench
