#include "bench/perf_producers.hpp"

#include <algorithm>

namespace stoat::bench {
namespace {

constexpr std::size_t kScratchBytes = 64 * 1024;
constexpr std::int64_t kLookAround_ns = 10'000'000;  // how often `stop` is looked at

}  // namespace

PerfProducers::PerfProducers(const PerfOptions& options, int share)
    : options_(options), scratch_(kScratchBytes) {
  for (int i = share; i < options.producers; i += options.producer_threads) {
    producers_.push_back(std::make_unique<PerfProducer>(options, i, figures_));
    poller_.add(producers_.back()->fd(), static_cast<std::uint32_t>(producers_.size() - 1));
  }
  awaits_socket_.resize(producers_.size());
}

void PerfProducers::receive(std::int64_t timeout_ns) {
  for (const epoll_event& event : poller_.wait(timeout_ns)) {
    if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR))
      producers_[event.data.u32]->receive(scratch_);
    if (event.events & EPOLLOUT) producers_[event.data.u32]->publish();
  }
}

std::int64_t PerfProducers::publish() {
  std::int64_t next_ns = PerfProducer::kNever;
  const std::int64_t now_ns = steady_ns();
  for (std::size_t i = 0; i < producers_.size(); ++i) {
    PerfProducer& producer = *producers_[i];
    if (producer.due_ns() <= now_ns) producer.publish();
    if (producer.socket_full() != awaits_socket_[i]) {
      awaits_socket_[i] = producer.socket_full();
      poller_.want(producer.fd(), static_cast<std::uint32_t>(i), true, awaits_socket_[i]);
    }
    next_ns = std::min(next_ns, producer.due_ns());
  }
  return next_ns;
}

void PerfProducers::run(const std::atomic<bool>& stop) {
  const std::int64_t begin_ns = steady_ns();
  for (auto& producer : producers_) producer->begin(begin_ns);
  const auto done = [](const auto& producer) { return producer->done(); };
  while (!stop.load(std::memory_order_relaxed)) {
    const std::int64_t next_ns = publish();
    if (next_ns == PerfProducer::kNever && std::all_of(producers_.begin(), producers_.end(), done))
      break;
    receive(next_ns == 0 ? 0 : std::min(next_ns - steady_ns(), kLookAround_ns));
  }
  settle_the_rest();
}

void PerfProducers::settle_the_rest() {
  const auto wait_ns = static_cast<std::int64_t>(options_.wait_seconds * 1e9);
  const auto done = [](const auto& producer) { return producer->done(); };
  for (auto& producer : producers_) producer->stop();
  figures_.last_ns = std::max(figures_.last_ns.load(), steady_ns());
  while (!std::all_of(producers_.begin(), producers_.end(), done) &&
         steady_ns() - figures_.last_ns.load() < wait_ns) {
    publish();
    receive(kLookAround_ns);
  }
  for (auto& producer : producers_) producer->finish();
}

void PerfProducers::close() {
  for (auto& producer : producers_) producer->close();
}

}  // namespace stoat::bench
