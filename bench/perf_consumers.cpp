#include "bench/perf_consumers.hpp"

#include <algorithm>

namespace stoat::bench {
namespace {

constexpr std::size_t kScratchBytes = 256 * 1024;
constexpr std::int64_t kQuiet_ns = 20'000'000;  // then acks that are due to nobody are sent
constexpr std::int64_t kSubscribeLimit_ns = 60'000'000'000;

}  // namespace

PerfConsumers::PerfConsumers(const PerfOptions& options, int share)
    : options_(options),
      received_(static_cast<std::size_t>(options.queues)),
      scratch_(kScratchBytes) {
  // A consumer of several queues has them for itself, so its first one decides.
  for (int i = 0; i < options.consumers; ++i) {
    if (i % options.queues % options.consumer_threads != share) continue;
    consumers_.push_back(std::make_unique<PerfConsumer>(options, i, received_, figures_));
    poller_.add(consumers_.back()->fd(), static_cast<std::uint32_t>(consumers_.size() - 1));
  }
  awaits_socket_.resize(consumers_.size());
  await_subscriptions();
}

void PerfConsumers::await_subscriptions() {
  const std::int64_t begin_ns = steady_ns();
  // What came behind the answer to qos is not in the socket any more.
  for (auto& consumer : consumers_) consumer->receive(scratch_);
  while (!std::all_of(consumers_.begin(), consumers_.end(),
                      [](const auto& consumer) { return consumer->subscribed(); })) {
    if (steady_ns() - begin_ns > kSubscribeLimit_ns)
      throw PerfError("the broker does not answer basic.consume");
    receive();
  }
}

void PerfConsumers::receive() {
  const auto ready = poller_.wait(kQuiet_ns);
  for (const epoll_event& event : ready) {
    PerfConsumer& consumer = *consumers_[event.data.u32];
    if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) consumer.receive(scratch_);
    if (event.events & EPOLLOUT) consumer.flush();
    watch_socket(event.data.u32);
  }
  if (!ready.empty()) return;
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    consumers_[i]->ack_rest();
    watch_socket(i);
  }
}

void PerfConsumers::watch_socket(std::size_t index) {
  if (consumers_[index]->socket_full() == awaits_socket_[index]) return;
  awaits_socket_[index] = consumers_[index]->socket_full();
  poller_.want(consumers_[index]->fd(), static_cast<std::uint32_t>(index), true,
               awaits_socket_[index]);
}

void PerfConsumers::run(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) receive();
  for (auto& consumer : consumers_) consumer->ack_rest();
}

void PerfConsumers::close() {
  for (auto& consumer : consumers_) consumer->close();
}

}  // namespace stoat::bench
