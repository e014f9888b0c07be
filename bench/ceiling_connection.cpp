#include "bench/ceiling_connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bench/ceiling_broker.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/confirm.hpp"
#include "wire/connection.hpp"
#include "wire/exchange.hpp"
#include "wire/properties.hpp"
#include "wire/queue.hpp"
#include "wire/writer.hpp"

namespace stoat::bench {
namespace {

namespace basic = wire::basic;
namespace connection = wire::connection;

constexpr std::uint32_t kFrameMaxBytes = 131072;
constexpr std::size_t kMaxOutputBytes = 1 << 20;

}  // namespace

CeilingConnection::CeilingConnection(CeilingBroker& broker, int fd, std::uint32_t index)
    : broker_(broker), fd_(fd), index_(index), decoder_(kFrameMaxBytes) {}

CeilingConnection::~CeilingConnection() {
  ::close(fd_);
}

bool CeilingConnection::receive(std::span<char> scratch) {
  const ssize_t got = ::recv(fd_, scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  std::string_view input(scratch.data(), static_cast<std::size_t>(got));
  if (!greeted_) {
    const std::size_t wanted = wire::kProtocolHeader.size() - greeting_.size();
    greeting_ += input.substr(0, wanted);
    input.remove_prefix(std::min(wanted, input.size()));
    if (greeting_.size() < wire::kProtocolHeader.size()) return true;
    greeted_ = true;
    connection::Start start;
    start.mechanisms = "PLAIN";
    start.locales = "en_US";
    write(ChannelNumber(0), start);
  }
  using Kind = wire::FrameDecoder::Kind;
  for (auto event = decoder_.next(input); event.kind != Kind::need_more;
       event = decoder_.next(input)) {
    if (event.kind == Kind::error) return false;
    take(event);
  }
  confirm();
  broker_.touch(*this);
  return true;
}

void CeilingConnection::take(const wire::FrameDecoder::Event& event) {
  using Kind = wire::FrameDecoder::Kind;
  if (event.kind == Kind::method) return take_method(event.channel, event.payload);
  if (event.kind == Kind::header) return take_header(event);
  if (event.kind != Kind::body || route_ == nullptr) return;
  wire::append_frame(content_, wire::kFrameBody, event.channel, event.payload);
  body_left_ -= std::min<std::uint64_t>(body_left_, event.payload.size());
  if (body_left_ == 0) finish_publish();
}

void CeilingConnection::take_header(const wire::FrameDecoder::Event& event) {
  const auto header = wire::ContentHeader::decode(event.payload);
  if (!header || route_ == nullptr) return;
  content_.clear();
  wire::append_frame(content_, wire::kFrameHeader, event.channel, event.payload);
  body_left_ = header->body_size;
  if (body_left_ == 0) finish_publish();
}

void CeilingConnection::finish_publish() {
  for (CeilingQueue* queue : *route_) {
    broker_.put(*queue, content_);
    broker_.hold_back(*this, *queue);
  }
  route_ = nullptr;
}

void CeilingConnection::confirm() {
  if (!confirms_ || confirmed_ == published_ || route_ != nullptr) return;
  confirmed_ = published_;
  write(publish_channel_, basic::Ack{confirmed_, true});
}

void CeilingConnection::take_method(ChannelNumber channel, std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (!id) return;
  if (id->class_id == basic::kClass) return take_basic_method(channel, *id, payload);
  if (id->class_id == connection::kClass) return take_connection_method(*id);
  if (*id == wire::channel::Open::kId) return write(channel, wire::channel::OpenOk{});
  if (*id == wire::channel::Close::kId) return write(channel, wire::channel::CloseOk{});
  if (*id == wire::confirm::Select::kId) {
    confirms_ = true;
    publish_channel_ = channel;
    return write(channel, wire::confirm::SelectOk{});
  }
  take_topology_method(channel, *id, payload);
}

void CeilingConnection::take_connection_method(wire::MethodId id) {
  if (id == connection::StartOk::kId)
    write(ChannelNumber(0), connection::Tune{2047, kFrameMaxBytes, 0});
  if (id == connection::Open::kId) write(ChannelNumber(0), connection::OpenOk{});
  if (id == connection::Close::kId) write(ChannelNumber(0), connection::CloseOk{});
}

void CeilingConnection::take_topology_method(ChannelNumber channel, wire::MethodId id,
                                             std::string_view payload) {
  namespace exchange = wire::exchange;
  namespace queue = wire::queue;
  if (id == exchange::Declare::kId) write(channel, exchange::DeclareOk{});
  if (const auto remove = wire::decode_method<exchange::Delete>(payload)) {
    broker_.remove_exchange(remove->exchange);
    write(channel, exchange::DeleteOk{});
  }
  if (const auto declare = wire::decode_method<queue::Declare>(payload)) {
    const auto waiting = broker_.queue(declare->queue).waiting.size();
    write(channel, queue::DeclareOk{declare->queue, static_cast<std::uint32_t>(waiting), 0});
  }
  if (const auto bind = wire::decode_method<queue::Bind>(payload)) {
    broker_.bind(bind->exchange, bind->queue);
    write(channel, queue::BindOk{});
  }
  if (const auto purge = wire::decode_method<queue::Purge>(payload)) {
    CeilingQueue& emptied = broker_.queue(purge->queue);
    emptied.waiting.clear();
    emptied.waiting_bytes = 0;
    write(channel, queue::PurgeOk{});
  }
  if (const auto remove = wire::decode_method<queue::Delete>(payload)) {
    broker_.remove_queue(remove->queue);
    write(channel, queue::DeleteOk{});
  }
}

void CeilingConnection::take_basic_method(ChannelNumber channel, wire::MethodId id,
                                          std::string_view payload) {
  if (id == basic::Publish::kId) {
    if (const auto publish = wire::decode_method<basic::Publish>(payload)) {
      route_ = &broker_.route(publish->exchange, publish->routing_key);
      ++published_;
    }
  } else if (id == basic::Ack::kId) {
    if (const auto ack = wire::decode_method<basic::Ack>(payload)) {
      // Only how many are out counts here, and that is taken from the newest tag.
      acked_ = std::max(acked_, ack->delivery_tag);
      pump_queues();
    }
  } else if (id == basic::Qos::kId) {
    if (const auto qos = wire::decode_method<basic::Qos>(payload)) prefetch_ = qos->prefetch_count;
    write(channel, basic::QosOk{});
  } else if (id == basic::Consume::kId) {
    if (const auto consume = wire::decode_method<basic::Consume>(payload)) {
      const std::string tag =
          consume->consumer_tag.text.empty() ? "ceiling" : consume->consumer_tag.str();
      write(channel, basic::ConsumeOk{tag});
      consumes_from_.push_back(&broker_.queue(consume->queue));
      broker_.subscribe(consume->queue, {this, tag, consume->no_ack});
    }
  }
}

bool CeilingConnection::can_take(bool no_ack) const {
  if (out_.size() - out_sent_ > kMaxOutputBytes) return false;
  return no_ack || prefetch_ == 0 || delivered_ - acked_ < prefetch_;
}

void CeilingConnection::pump_queues() {
  for (CeilingQueue* queue : consumes_from_) broker_.pump(*queue);
}

void CeilingConnection::deliver(const CeilingConsumer& consumer, std::string_view content) {
  basic::Deliver deliver;
  deliver.consumer_tag = consumer.tag;
  deliver.delivery_tag = ++delivered_;
  write(ChannelNumber(1), deliver);
  out_ += content;
}

bool CeilingConnection::flush() {
  while (out_sent_ < out_.size()) {
    const ssize_t sent =
        ::send(fd_, out_.data() + out_sent_, out_.size() - out_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    out_sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  out_sent_ = 0;
  return true;
}

}  // namespace stoat::bench
