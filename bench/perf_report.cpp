#include "bench/perf_report.hpp"

#include <algorithm>
#include <cstdio>

namespace stoat::bench {
namespace {

using ull = unsigned long long;

constexpr struct {
  const char* name;
  double percent;
} kPercentiles[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}};

void print_latency(const char* what, const LatencyHistogram& latency) {
  if (latency.count() == 0) return;
  std::printf("%s ms:", what);
  for (const auto& [name, percent] : kPercentiles)
    std::printf(" %s %.3f,", name, latency.percentile_ms(percent));
  std::printf(" max %.3f\n", latency.max_ms());
}

void print_latency_json(const char* what, const LatencyHistogram& latency) {
  std::printf(", \"%s_ms\": {", what);
  for (const auto& [name, percent] : kPercentiles)
    std::printf("\"%s\": %.4f, ", name, latency.percentile_ms(percent));
  std::printf("\"max\": %.4f}", latency.max_ms());
}

}  // namespace

double PerfReport::broker_cpu_us_per_message() const {
  const std::uint64_t messages = std::max(totals.sent, totals.received);
  return messages == 0 ? 0 : broker.cpu_seconds * 1e6 / static_cast<double>(messages);
}

void PerfReport::print() const {
  std::printf("in %.1f s: sent %.0f/s, confirmed %.0f/s, received %.0f/s\n", seconds, sent_rate,
              confirmed_rate, received_rate);
  print_latency("confirm", totals.confirm_latency);
  print_latency("delivery", totals.delivery_latency);
  if (broker.rss_mb > 0)
    std::printf("broker: %.2f µs CPU a message, %.1f MB, peak %.1f MB\n",
                broker_cpu_us_per_message(), broker.rss_mb, broker.peak_rss_mb);
  std::printf(
      "%llu sent, %llu received, %llu refused, %llu returned, %llu unconfirmed, %llu lost, "
      "%llu duplicated, %llu out of order, %llu redelivered, %llu strange, %llu left\n",
      static_cast<ull>(totals.sent), static_cast<ull>(totals.received),
      static_cast<ull>(totals.refused), static_cast<ull>(totals.returned),
      static_cast<ull>(totals.unconfirmed), static_cast<ull>(totals.lost),
      static_cast<ull>(totals.duplicated), static_cast<ull>(totals.disordered),
      static_cast<ull>(totals.redelivered), static_cast<ull>(totals.strange),
      static_cast<ull>(left));
}

void PerfReport::print_json(const PerfOptions& options) const {
  std::printf(
      "{\"producers\": %d, \"consumers\": %d, \"queues\": %d, \"size\": %zu, \"confirm\": %d, "
      "\"prefetch\": %d, \"ack_every\": %d, \"persistent\": %s, \"seconds\": %.4f",
      options.producers, options.consumers, options.queues, options.size_bytes, options.confirm,
      options.prefetch, options.ack_every, options.persistent ? "true" : "false", seconds);
  std::printf(", \"sent_rate\": %.1f, \"confirmed_rate\": %.1f, \"received_rate\": %.1f", sent_rate,
              confirmed_rate, received_rate);
  const struct {
    const char* name;
    std::uint64_t count;
  } counts[] = {{"sent", totals.sent},
                {"confirmed", totals.confirmed},
                {"refused", totals.refused},
                {"returned", totals.returned},
                {"unconfirmed", totals.unconfirmed},
                {"received", totals.received},
                {"redelivered", totals.redelivered},
                {"lost", totals.lost},
                {"duplicated", totals.duplicated},
                {"disordered", totals.disordered},
                {"strange", totals.strange},
                {"left", left}};
  for (const auto& [name, count] : counts)
    std::printf(", \"%s\": %llu", name, static_cast<ull>(count));
  print_latency_json("confirm", totals.confirm_latency);
  print_latency_json("delivery", totals.delivery_latency);
  std::printf(", \"broker_cpu_us_per_message\": %.4f", broker_cpu_us_per_message());
  std::printf(", \"broker_rss_mb\": %.2f, \"broker_peak_rss_mb\": %.2f", broker.rss_mb,
              broker.peak_rss_mb);
  std::printf(", \"clean\": %s}\n", clean() ? "true" : "false");
}

void print_progress(const PerfTotals& before, const PerfTotals& now) {
  const LatencyHistogram delivery = now.delivery_latency.since(before.delivery_latency);
  const LatencyHistogram confirm = now.confirm_latency.since(before.confirm_latency);
  std::printf(
      "sent %llu, confirmed %llu, received %llu; "
      "delivery ms p50 %.3f p99 %.3f, confirm ms p50 %.3f p99 %.3f\n",
      static_cast<ull>(now.sent - before.sent), static_cast<ull>(now.confirmed - before.confirmed),
      static_cast<ull>(now.received - before.received), delivery.percentile_ms(50),
      delivery.percentile_ms(99), confirm.percentile_ms(50), confirm.percentile_ms(99));
  std::fflush(stdout);
}

}  // namespace stoat::bench
