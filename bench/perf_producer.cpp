#include "bench/perf_producer.hpp"

#include <algorithm>
#include <string>

#include "wire/basic.hpp"
#include "wire/confirm.hpp"

namespace stoat::bench {
namespace {

namespace basic = wire::basic;

}  // namespace

PerfProducer::PerfProducer(const PerfOptions& options, int index, ProducerFigures& figures)
    : options_(options),
      index_(static_cast<std::uint32_t>(index)),
      figures_(figures),
      connection_(options.uri, "stoat-perf producer " + std::to_string(index)),
      destinations_(destinations_of(options, index)),
      batch_(options, destinations_, connection_.frame_max_bytes()),
      window_(static_cast<std::size_t>(std::max(options.confirm, 1))),
      sequences_(destinations_.size(), 0) {
  if (options.confirm > 0) connection_.call<wire::confirm::SelectOk>(wire::confirm::Select{});
}

void PerfProducer::begin(std::int64_t now_ns) {
  begin_ns_ = now_ns;
  // Producers of one rate take turns rather than all publish at the same moment.
  if (options_.rate > 0)
    begin_ns_ += static_cast<std::int64_t>(1e9 / options_.rate * index_ / options_.producers);
}

void PerfProducer::receive(std::span<char> scratch) {
  connection_.read(scratch, [this](const PerfConnection::Event& event) {
    if (event.kind == wire::FrameDecoder::Kind::method) take_method(event.payload);
  });
}

void PerfProducer::take_method(std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (id == basic::Ack::kId) {
    if (const auto ack = wire::decode_method<basic::Ack>(payload))
      return settle(ack->delivery_tag, ack->multiple, figures_.confirmed);
  } else if (id == basic::Nack::kId) {
    if (const auto nack = wire::decode_method<basic::Nack>(payload))
      return settle(nack->delivery_tag, nack->multiple, figures_.refused);
  } else if (id == basic::Return::kId) {
    figures_.returned.add(1);
  } else {
    PerfConnection::check_not_closed(payload);
  }
}

void PerfProducer::settle(std::uint64_t tag, bool multiple, PerfCount& count) {
  const std::int64_t now_ns = steady_ns();
  std::uint64_t settled = 0;
  const bool known = window_.settle(tag, multiple, [&](std::int64_t sent_ns) {
    figures_.confirm_latency.record(now_ns - sent_ns);
    ++settled;
  });
  if (!known) throw PerfError("a confirm of publish " + std::to_string(tag) + " out of place");
  count.add(settled);
  figures_.last_ns.store(now_ns, std::memory_order_relaxed);
}

std::uint64_t PerfProducer::left() const {
  if (stopped_) return 0;
  return options_.messages == 0 ? UINT64_MAX : options_.messages - sent_;
}

std::int64_t PerfProducer::due_ns_of(std::uint64_t message) const {
  return begin_ns_ + static_cast<std::int64_t>(static_cast<double>(message) * 1e9 / options_.rate);
}

std::size_t PerfProducer::count_due(std::int64_t now_ns, std::size_t most) const {
  if (options_.rate == 0) return most;
  std::size_t count = 0;
  while (count < most && due_ns_of(sent_ + count) <= now_ns) ++count;
  return count;
}

std::int64_t PerfProducer::due_ns() const {
  if (socket_full() || left() == 0) return kNever;
  if (options_.confirm > 0 && window_.room() == 0) return kNever;
  return options_.rate == 0 ? 0 : due_ns_of(sent_);
}

bool PerfProducer::done() const {
  return !socket_full() && left() == 0 && window_.outstanding() == 0;
}

void PerfProducer::publish() {
  const std::int64_t now_ns = steady_ns();
  if (socket_full()) return send(unsent_, now_ns);
  batch_.start(destination_);
  std::uint64_t most = std::min<std::uint64_t>(batch_.room(), left());
  if (options_.confirm > 0) most = std::min<std::uint64_t>(most, window_.room());
  const std::size_t count = count_due(now_ns, static_cast<std::size_t>(most));
  if (count == 0) return;
  PerfStamp stamp;
  stamp.producer = index_;
  for (std::size_t i = 0; i < count; ++i) {
    stamp.time_ns = options_.rate == 0 ? now_ns : due_ns_of(sent_ + i);
    stamp.sequence = sequences_[destination_]++;
    batch_.add(stamp);
    if (options_.confirm > 0) window_.sent(stamp.time_ns);
    if (++destination_ == destinations_.size()) destination_ = 0;
  }
  sent_ += count;
  figures_.sent.add(count);
  send(batch_.frames(), now_ns);
}

void PerfProducer::send(std::string_view frames, std::int64_t now_ns) {
  unsent_ = frames.substr(connection_.send_some(frames));
  figures_.last_ns.store(now_ns, std::memory_order_relaxed);
}

void PerfProducer::finish() {
  figures_.unconfirmed.add(window_.outstanding());
}

}  // namespace stoat::bench
