// WireClient's helpers: one AMQP method each, with its -ok.

#include <set>

#include "tests/support/wire_client.hpp"

namespace stoat::test {

using namespace wire;  // NOLINT: this file is all AMQP names

void WireClient::open_channel(std::uint16_t channel) {
  call<channel::OpenOk>(channel, channel::Open{});
}

void WireClient::close_channel(std::uint16_t channel) {
  call<channel::CloseOk>(channel, channel::Close{kReplySuccess, "done", 0, 0});
}

void WireClient::close() {
  call<connection::CloseOk>(0, connection::Close{kReplySuccess, "done", 0, 0});
  // Some brokers leave closing the socket to the client, who asked for the end.
  socket_.shutdown_send();
  expect_eof();
}

Received<queue::DeclareOk> WireClient::declare_queue(std::uint16_t channel, std::string_view queue,
                                                     const Table& arguments, bool durable) {
  queue::Declare declare;
  declare.queue = queue;
  declare.durable = durable;
  declare.arguments = arguments;
  return call<queue::DeclareOk>(channel, declare);
}

void WireClient::declare_exchange(std::uint16_t channel, std::string_view exchange,
                                  std::string_view type, const Table& arguments) {
  exchange::Declare declare;
  declare.exchange = exchange;
  declare.type = type;
  declare.arguments = arguments;
  call<exchange::DeclareOk>(channel, declare);
}

void WireClient::bind(std::uint16_t channel, std::string_view queue, std::string_view exchange,
                      std::string_view routing_key, const Table& arguments) {
  call<queue::BindOk>(channel, queue::Bind{0, queue, exchange, routing_key, false, arguments});
}

void WireClient::bind_exchange(std::uint16_t channel, std::string_view destination,
                               std::string_view source, std::string_view routing_key,
                               const Table& arguments) {
  call<exchange::BindOk>(channel,
                         exchange::Bind{0, destination, source, routing_key, false, arguments});
}

std::uint32_t WireClient::delete_queue(std::uint16_t channel, std::string_view queue) {
  return call<queue::DeleteOk>(channel, queue::Delete{0, queue, false, false, false}).message_count;
}

void WireClient::delete_exchange(std::uint16_t channel, std::string_view exchange) {
  call<exchange::DeleteOk>(channel, exchange::Delete{0, exchange, false, false});
}

std::uint32_t WireClient::ready_count(std::uint16_t channel, std::string_view queue) {
  queue::Declare declare;
  declare.queue = queue;
  declare.passive = true;
  return call<queue::DeclareOk>(channel, declare).message_count;
}

void WireClient::qos(std::uint16_t channel, std::uint16_t prefetch_count, bool global) {
  call<basic::QosOk>(channel, basic::Qos{0, prefetch_count, global});
}

void WireClient::confirm_select(std::uint16_t channel) {
  call<confirm::SelectOk>(channel, confirm::Select{});
}

std::string WireClient::consume(std::uint16_t channel, std::string_view queue, std::string_view tag,
                                bool no_ack, const Table& arguments) {
  basic::Consume consume;
  consume.queue = queue;
  consume.consumer_tag = tag;
  consume.no_ack = no_ack;
  consume.arguments = arguments;
  return call<basic::ConsumeOk>(channel, consume).consumer_tag.str();
}

void WireClient::cancel(std::uint16_t channel, std::string_view tag) {
  call<basic::CancelOk>(channel, basic::Cancel{tag, false});
}

std::optional<Gotten> WireClient::get(std::uint16_t channel, std::string_view queue, bool no_ack) {
  send(channel, basic::Get{0, queue, no_ack});
  const Frame frame = take(channel, "basic.get-ok or basic.get-empty");
  if (frame.kind == FrameDecoder::Kind::method &&
      peek_method_id(*frame.payload) == basic::GetEmpty::kId)
    return std::nullopt;
  Gotten message;
  message.method = decode<basic::GetOk>(frame);
  take_content(channel, message.raw_properties, message.body, message.body_frame_bytes);
  return message;
}

std::vector<Gotten> WireClient::drain(std::uint16_t channel, std::string_view queue) {
  std::vector<Gotten> messages;
  while (auto message = get(channel, queue)) messages.push_back(std::move(*message));
  return messages;
}

void WireClient::publish(std::uint16_t channel, std::string_view exchange,
                         std::string_view routing_key, std::string_view body,
                         const Properties& properties, bool mandatory) {
  std::string out;
  append_method(out, ChannelNumber(channel),
                basic::Publish{0, exchange, routing_key, mandatory, false});
  append_content_header(out, ChannelNumber(channel), body.size(), properties.encode());
  append_body(out, ChannelNumber(channel), body, frame_max_);
  send_raw(out);
}

void WireClient::send_content(std::uint16_t channel, std::string_view raw_properties,
                              std::string_view body) {
  std::string out;
  append_content_header(out, ChannelNumber(channel), body.size(), raw_properties);
  append_body(out, ChannelNumber(channel), body, frame_max_);
  send_raw(out);
}

void WireClient::ack(std::uint16_t channel, std::uint64_t tag, bool multiple) {
  send(channel, basic::Ack{tag, multiple});
}

void WireClient::nack(std::uint16_t channel, std::uint64_t tag, bool multiple, bool requeue) {
  send(channel, basic::Nack{tag, multiple, requeue});
}

void WireClient::reject(std::uint16_t channel, std::uint64_t tag, bool requeue) {
  send(channel, basic::Reject{tag, requeue});
}

std::vector<bool> WireClient::collect_confirms(std::uint16_t channel, std::uint64_t count,
                                               std::uint64_t first) {
  std::set<std::uint64_t> open;
  for (std::uint64_t tag = first; tag < first + count; ++tag) open.insert(open.end(), tag);
  std::vector<bool> acked(count);
  while (!open.empty()) {
    const Confirm confirm = expect_confirm(channel);
    const auto to = open.find(confirm.tag);
    if (to == open.end())
      throw Unexpected("tag " + std::to_string(confirm.tag) + " was settled twice, or never sent");
    const auto from = confirm.multiple ? open.begin() : to;
    for (auto tag = from; tag != std::next(to); ++tag) acked[*tag - first] = !confirm.nack;
    open.erase(from, std::next(to));
  }
  return acked;
}

std::vector<std::string> bodies(const std::vector<Gotten>& messages) {
  std::vector<std::string> all;
  all.reserve(messages.size());
  for (const Gotten& message : messages) all.push_back(message.body);
  return all;
}

}  // namespace stoat::test
