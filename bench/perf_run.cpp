#include "bench/perf_run.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include "bench/perf_topology.hpp"

namespace stoat::bench {
namespace {

constexpr std::chrono::milliseconds kPoll{5};

std::int64_t ns_of(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace

int PerfRun::run(const std::atomic<bool>& interrupted) {
  connect();
  broker_before_ = PerfProcess::look(options_.broker_pid);
  begin_ns_ = steady_ns();
  next_line_ns_ = begin_ns_ + ns_of(options_.interval_seconds);
  for (auto& share : consumers_)
    start([&share, this] { share->run(stop_consuming_); }, &consuming_);
  for (auto& share : producers_)
    start([&share, this] { share->run(stop_producing_); }, &producing_);
  watch_producers(interrupted);
  wait_for_deliveries(interrupted);
  PerfReport report = make_report(totals());
  join();
  take_down(report);
  report.print();
  if (options_.json) report.print_json(options_);
  return report.clean() ? 0 : 1;
}

void PerfRun::connect() {
  {
    PerfConnection connection(options_.uri, "stoat-perf set-up");
    set_up(options_, connection);
    if (options_.phase == PerfOptions::Phase::drain) drained_from_ = depth_of(options_, connection);
    connection.close();
  }
  for (int i = 0; options_.produces() && i < options_.producer_threads; ++i)
    producers_.push_back(std::make_unique<PerfProducers>(options_, i));
  for (int i = 0; options_.consumes() && i < options_.consumer_threads; ++i)
    consumers_.push_back(std::make_unique<PerfConsumers>(options_, i));
}

void PerfRun::start(std::function<void()> part, std::atomic<int>* running) {
  ++*running;
  threads_.emplace_back([this, running, part = std::move(part)] {
    try {
      part();
    } catch (const std::exception& error) {
      std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
    }
    --*running;
  });
}

bool PerfRun::failed() {
  std::lock_guard lock(mutex_);
  return !failure_.empty();
}

void PerfRun::pass_time() {
  std::this_thread::sleep_for(kPoll);
  if (steady_ns() < next_line_ns_) return;
  next_line_ns_ += ns_of(options_.interval_seconds);
  const PerfTotals now = totals();
  print_progress(last_line_, now);
  last_line_ = now;
}

// Ends the producers when it is time, and waits for their confirms.
void PerfRun::watch_producers(const std::atomic<bool>& interrupted) {
  const std::int64_t end_ns =
      options_.messages > 0 ? INT64_MAX : begin_ns_ + ns_of(options_.seconds);
  while (producing_ > 0) {
    pass_time();
    if (interrupted || failed() || steady_ns() >= end_ns) stop_producing_ = true;
  }
}

// Until all that was sent has come, or nothing does any more.
void PerfRun::wait_for_deliveries(const std::atomic<bool>& interrupted) {
  std::uint64_t seen = 0;
  std::int64_t last_progress_ns = steady_ns();
  while (consuming_ > 0 && !interrupted && !failed()) {
    const PerfTotals now = totals();
    if (now.received_once() >= expected(now)) break;
    if (std::exchange(seen, now.received) != now.received) last_progress_ns = steady_ns();
    if (steady_ns() - last_progress_ns > ns_of(options_.wait_seconds)) break;
    pass_time();
  }
}

void PerfRun::join() {
  stop_producing_ = stop_consuming_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void PerfRun::take_down(PerfReport& report) {
  try {
    // After a failure some of them may be beyond use; the sockets close with the process.
    if (!failed()) {
      for (auto& share : producers_) share->close();
      for (auto& share : consumers_) share->close();
    }
    PerfConnection connection(options_.uri, "stoat-perf take-down");
    if (!failed()) report.left = depth_of(options_, connection);
    if (!options_.keep && options_.phase != PerfOptions::Phase::fill)
      tear_down(options_, connection);
    connection.close();
  } catch (const std::exception& error) {
    std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.what();
  }
  report.failed = failed();
  if (report.failed) std::fprintf(stderr, "stoat-perf: %s\n", failure_.c_str());
}

PerfTotals PerfRun::totals() const {
  PerfTotals sum;
  for (const auto& share : producers_) {
    const ProducerFigures& figures = share->figures();
    sum.sent += figures.sent.get();
    sum.confirmed += figures.confirmed.get();
    sum.refused += figures.refused.get();
    sum.returned += figures.returned.get();
    sum.unconfirmed += figures.unconfirmed.get();
    figures.confirm_latency.add_to(sum.confirm_latency);
  }
  for (const auto& share : consumers_) {
    const ConsumerFigures& figures = share->figures();
    sum.received += figures.received.get();
    sum.redelivered += figures.redelivered.get();
    sum.seen_before += figures.seen_before.get();
    sum.duplicated += figures.duplicated.get();
    sum.disordered += figures.disordered.get();
    sum.strange += figures.strange.get();
    figures.delivery_latency.add_to(sum.delivery_latency);
  }
  return sum;
}

// Deliveries, each message once.
std::uint64_t PerfRun::expected(const PerfTotals& totals) const {
  if (options_.phase == PerfOptions::Phase::drain) return drained_from_;
  const std::uint64_t gone = std::min(totals.sent, totals.refused + totals.returned);
  return (totals.sent - gone) * options_.copies();
}

PerfReport PerfRun::make_report(const PerfTotals& totals) const {
  PerfReport report;
  report.totals = totals;
  const std::int64_t now_ns = steady_ns();
  report.seconds = static_cast<double>(now_ns - begin_ns_) / 1e9;
  std::int64_t sent_ns = 0, first_ns = INT64_MAX, received_ns = 0;
  for (const auto& share : producers_) sent_ns = std::max(sent_ns, share->figures().last_ns.load());
  for (const auto& share : consumers_) {
    received_ns = std::max(received_ns, share->figures().last_ns.load());
    if (const auto first = share->figures().first_ns.load(); first != 0)
      first_ns = std::min(first_ns, first);
  }
  const auto rate = [](std::uint64_t count, std::int64_t begin_ns, std::int64_t end_ns) {
    return end_ns <= begin_ns
               ? 0
               : static_cast<double>(count) * 1e9 / static_cast<double>(end_ns - begin_ns);
  };
  report.sent_rate = rate(totals.sent, begin_ns_, sent_ns);
  report.confirmed_rate = rate(totals.confirmed, begin_ns_, sent_ns);
  report.received_rate = rate(totals.received, std::min(begin_ns_, first_ns), received_ns);
  if (options_.consumes()) {
    const std::uint64_t want = expected(totals);
    report.totals.lost = want - std::min(want, totals.received_once());
  }
  report.broker = PerfProcess::look(options_.broker_pid);
  report.broker.cpu_seconds -= broker_before_.cpu_seconds;
  return report;
}

}  // namespace stoat::bench
