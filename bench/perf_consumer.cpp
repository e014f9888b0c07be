#include "bench/perf_consumer.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "bench/perf_topology.hpp"
#include "wire/basic.hpp"
#include "wire/properties.hpp"

namespace stoat::bench {
namespace {

namespace basic = wire::basic;

// A consumer tag is the queue's place among those of the consumer.
std::size_t place_of(std::string_view tag) {
  std::size_t place = SIZE_MAX;
  std::from_chars(tag.data(), tag.data() + tag.size(), place);
  return place;
}

}  // namespace

PerfConsumer::PerfConsumer(const PerfOptions& options, int index,
                           std::vector<PerfReceived>& received, ConsumerFigures& figures)
    : options_(options),
      figures_(figures),
      received_(received),
      connection_(options.uri, "stoat-perf consumer " + std::to_string(index)),
      queues_(queues_of(options, index)),
      expected_(queues_.size()) {
  basic::Qos qos;
  qos.prefetch_count = static_cast<std::uint16_t>(options.prefetch);
  connection_.call<basic::QosOk>(qos);
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const std::string queue = options.queue_name(queues_[i]);
    const std::string tag = std::to_string(i);
    basic::Consume consume;
    consume.queue = queue;
    consume.consumer_tag = tag;
    consume.no_ack = options.ack_every == 0;
    connection_.write(consume);
  }
  connection_.flush_waiting();
}

void PerfConsumer::receive(std::span<char> scratch) {
  now_ns_ = 0;
  counted_ = 0;
  connection_.read(scratch, [this](const PerfConnection::Event& event) { take(event); });
  if (counted_ > 0) {
    figures_.received.add(counted_);
    if (figures_.first_ns.load(std::memory_order_relaxed) == 0) figures_.first_ns = now_ns_;
    figures_.last_ns.store(now_ns_, std::memory_order_relaxed);
  }
  connection_.flush();
}

void PerfConsumer::take(const PerfConnection::Event& event) {
  using Kind = wire::FrameDecoder::Kind;
  if (event.kind == Kind::body) return take_body(event.payload);
  if (event.kind == Kind::method) return take_method(event.payload);
  if (event.kind != Kind::header) return;
  const auto header = wire::ContentHeader::decode(event.payload);
  if (!header) throw PerfError("a malformed content header");
  delivery_.headed = true;
  delivery_.body_left = header->body_size;
  delivery_.front_bytes = 0;
  if (delivery_.body_left == 0) finish_delivery();
}

void PerfConsumer::take_method(std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (id == basic::Deliver::kId) {
    const auto deliver = wire::decode_method<basic::Deliver>(payload);
    if (!deliver) throw PerfError("a malformed basic.deliver");
    delivery_.tag = deliver->delivery_tag;
    delivery_.redelivered = deliver->redelivered;
    delivery_.headed = false;
    delivery_.queue = place_of(deliver->consumer_tag.text);
    if (delivery_.queue >= queues_.size()) throw PerfError("a delivery to an unknown consumer");
  } else if (id == basic::ConsumeOk::kId) {
    ++consume_oks_;
  } else if (id == basic::Cancel::kId) {
    throw PerfError("the broker cancelled a consumer");
  } else {
    PerfConnection::check_not_closed(payload);
  }
}

void PerfConsumer::take_body(std::string_view bytes) {
  if (!delivery_.headed || bytes.size() > delivery_.body_left)
    throw PerfError("a body that belongs to no delivery");
  const std::size_t wanted = std::min(bytes.size(), delivery_.front.size() - delivery_.front_bytes);
  if (wanted > 0) {
    std::memcpy(delivery_.front.data() + delivery_.front_bytes, bytes.data(), wanted);
    delivery_.front_bytes += wanted;
  }
  delivery_.body_left -= bytes.size();
  if (delivery_.body_left == 0) finish_delivery();
}

void PerfConsumer::finish_delivery() {
  if (counted_++ == 0) now_ns_ = steady_ns();  // one look at the clock a read
  delivery_.headed = false;
  if (delivery_.redelivered) figures_.redelivered.add(1);
  if (options_.size_bytes >= PerfStamp::kBytes) {
    const auto stamp = PerfStamp::load({delivery_.front.data(), delivery_.front_bytes});
    if (stamp && stamp->producer < PerfReceived::kMaxProducers &&
        stamp->sequence < PerfReceived::kMaxSequence)
      check(*stamp);
    else
      figures_.strange.add(1);
  }
  newest_tag_ = delivery_.tag;
  if (options_.ack_every > 0 && ++unacked_ >= options_.ack_every) ack();
}

void PerfConsumer::check(const PerfStamp& stamp) {
  if (options_.phase == PerfOptions::Phase::both)
    figures_.delivery_latency.record(now_ns_ - stamp.time_ns);
  PerfReceived& received = received_[static_cast<std::size_t>(queues_[delivery_.queue])];
  const bool first = received.note(stamp.producer, stamp.sequence);
  if (!first) (delivery_.redelivered ? figures_.seen_before : figures_.duplicated).add(1);
  // What comes again comes out of order.
  if (!first || delivery_.redelivered) return;
  std::vector<std::uint64_t>& expected = expected_[delivery_.queue];
  if (stamp.producer >= expected.size()) expected.resize(stamp.producer + 1);
  std::uint64_t& next = expected[stamp.producer];
  if (stamp.sequence < next) figures_.disordered.add(1);
  next = std::max(next, stamp.sequence + 1);
}

void PerfConsumer::ack() {
  connection_.write(basic::Ack{newest_tag_, options_.ack_every > 1});
  unacked_ = 0;
}

void PerfConsumer::ack_rest() {
  if (unacked_ == 0) return;
  connection_.write(basic::Ack{newest_tag_, true});
  unacked_ = 0;
  connection_.flush();
}

}  // namespace stoat::bench
