#include "home_driver.hpp"

#include <iterator>
#include <utility>

namespace stoat::testing {

using broker::ToConnection;
using broker::ToHome;

namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

broker::MessagePtr make_message(std::string_view body, bool persistent) {
  broker::MessageBuilder builder;
  builder.start("", "key", "", persistent, WallTime{}, body.size(), body.size());
  builder.append(body);
  return builder.finish();
}

HomeDriver::HomeDriver(broker::HomeLimits limits_in) : limits(limits_in) {
  store.recover();
  make_home();
}

void HomeDriver::make_home() {
  broker::Home::Hooks hooks;
  hooks.post = [this](std::function<void()> work) { posted_.push_back(std::move(work)); };
  hooks.deliver = [this](ConnectionId to, WorkerIndex, ToConnection& batch) {
    ToConnection& box = inbox[to.value];
    append(box.deliveries, batch.deliveries);
    append(box.confirms, batch.confirms);
    append(box.cancelled, batch.cancelled);
    append(box.wanted, batch.wanted);
    append(box.returned, batch.returned);
    box.taken_bytes += batch.taken_bytes;
  };
  hooks.unused = [this](QueueId queue) { unused.push_back(queue); };
  home = std::make_unique<broker::Home>(WorkerIndex(0), store, clock_, std::move(hooks), limits);
}

void HomeDriver::restart(const std::vector<broker::QueueSpec>& specs) {
  home.reset();
  posted_.clear();
  inbox.clear();
  unused.clear();
  make_home();
  recovered = store.recover();
  for (const broker::QueueSpec& spec : specs) {
    const store::RecoveredStream* stream = nullptr;
    for (const auto& candidate : recovered.streams) {
      if (candidate.stream.queue == spec.id) stream = &candidate;
    }
    home->create_queue(spec, stream, recovered.clean);
  }
}

void HomeDriver::run_posted(const std::function<void()>& after) {
  while (!posted_.empty()) {
    const auto work = std::move(posted_.front());
    posted_.pop_front();
    work();
    turn();
    if (after) after();
  }
}

void HomeDriver::settle_down() {
  turn();
  run_posted();
  while (store.batches_waiting() + store.reads_waiting() > 0) {
    if (store.batches_waiting() > 0) store.complete_batch();
    if (store.reads_waiting() > 0) store.complete_read();
    run_posted();
  }
}

broker::QueueSpec HomeDriver::make_queue(std::uint64_t id, bool durable, bool auto_delete,
                                         bool single_active) {
  broker::QueueSpec spec;
  spec.id = QueueId(id);
  spec.durable = durable;
  spec.auto_delete = auto_delete;
  if (single_active) spec.arguments.set("x-single-active-consumer", true);
  home->create_queue(spec, nullptr, true);
  return spec;
}

broker::ConsumerSpec HomeDriver::consumer(std::uint64_t connection, std::uint64_t id,
                                          std::uint16_t prefetch) const {
  broker::ConsumerSpec spec;
  spec.connection = ConnectionId(connection);
  spec.channel = {ChannelNumber(1), ChannelIncarnation(1)};
  spec.id = ConsumerId(id);
  spec.prefetch = prefetch;
  return spec;
}

broker::ConsumeResult HomeDriver::consume(std::uint64_t queue, broker::ConsumerSpec spec) {
  const auto result = home->consume(QueueId(queue), std::move(spec));
  turn();
  return result;
}

void HomeDriver::publish(std::uint64_t connection, std::uint64_t queue, std::string_view body,
                         std::uint64_t tag, bool persistent) {
  ToHome batch;
  batch.publishes.push_back({QueueId(queue),
                             make_message(body, persistent),
                             {ChannelNumber(1), ChannelIncarnation(1)},
                             PublishTag(tag)});
  home->take(ConnectionId(connection), WorkerIndex(0), batch);
  turn();
}

void HomeDriver::settle(std::uint64_t connection, std::uint64_t queue, broker::SettleKind kind,
                        std::uint64_t first, std::uint64_t last) {
  ToHome batch;
  batch.settles.push_back({QueueId(queue), 0, kind, Sequence(first), Sequence(last)});
  home->take(ConnectionId(connection), WorkerIndex(0), batch);
  turn();
}

void HomeDriver::written(std::uint64_t connection, std::uint64_t bytes) {
  ToHome batch;
  batch.written_bytes = bytes;
  home->take(ConnectionId(connection), WorkerIndex(0), batch);
  turn();
}

std::vector<broker::Delivery> HomeDriver::deliveries(std::uint64_t connection) {
  return std::exchange(inbox[connection].deliveries, {});
}

std::vector<std::string> HomeDriver::bodies(std::uint64_t connection) {
  std::vector<std::string> all;
  for (const broker::Delivery& delivery : deliveries(connection)) {
    all.emplace_back(delivery.message->body());
    if (delivery.redelivered) all.back() += '*';
  }
  return all;
}

std::vector<std::string> HomeDriver::confirms(std::uint64_t connection) {
  std::vector<std::string> all;
  for (const broker::Confirm& confirm : std::exchange(inbox[connection].confirms, {})) {
    all.push_back((confirm.nack ? "!" : "") + std::to_string(confirm.first.value) + "-" +
                  std::to_string(confirm.last.value));
  }
  return all;
}

std::uint64_t HomeDriver::taken_bytes(std::uint64_t connection) {
  return std::exchange(inbox[connection].taken_bytes, 0);
}

}  // namespace stoat::testing
