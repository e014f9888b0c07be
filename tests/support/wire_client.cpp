#include "tests/support/wire_client.hpp"

#include <algorithm>
#include <set>

#include "wire/writer.hpp"

namespace stoat::test {

using namespace wire;  // NOLINT: this file is all AMQP names

Table ConnectOptions::all_capabilities() {
  return {{"product", "stoat-test"},
          {"capabilities", Table{{"publisher_confirms", true},
                                 {"exchange_exchange_bindings", true},
                                 {"basic.nack", true},
                                 {"consumer_cancel_notify", true},
                                 {"connection.blocked", true},
                                 {"authentication_failure_close", true}}}};
}

std::string sasl_response(const ConnectOptions& options) {
  if (options.mechanism != "AMQPLAIN")
    return std::string(1, '\0') + options.user + std::string(1, '\0') + options.password;
  std::string with_length;
  Writer(with_length).table({{"LOGIN", options.user}, {"PASSWORD", options.password}});
  return with_length.substr(4);  // AMQPLAIN has the table's entries without their length
}

WireClient::WireClient(std::uint16_t port, const ConnectOptions& options) : socket_(port) {
  login(options);
  open_channel(1);
}

// --- handshake ---

Received<connection::Start> WireClient::expect_start() {
  send_protocol_header();
  return expect<connection::Start>(0);
}

void WireClient::send_start_ok(const ConnectOptions& options) {
  const std::string response = sasl_response(options);
  send(0, connection::StartOk{options.client_properties, options.mechanism, response, "en_US"});
}

void WireClient::login(const ConnectOptions& options) {
  expect_start();
  send_start_ok(options);
  tune_ = expect<connection::Tune>(0);
  frame_max_ = options.frame_max;
  send(0, connection::TuneOk{options.channel_max, options.frame_max, options.heartbeat});
  call<connection::OpenOk>(0, connection::Open{options.vhost, "", false});
}

// --- receiving ---

FrameSocket::Arrival WireClient::receive(Frame& frame, TestClock::time_point deadline) {
  while (true) {
    const auto left = std::max(
        milliseconds(0), std::chrono::duration_cast<milliseconds>(deadline - TestClock::now()));
    const auto arrival = socket_.receive(frame, left);
    if (arrival != FrameSocket::Arrival::frame) return arrival;
    if (frame.kind != FrameDecoder::Kind::heartbeat) return arrival;
    ++heartbeats_received_;
  }
}

Frame WireClient::take(std::uint16_t channel, std::string_view expected, milliseconds limit) {
  const auto mine = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const Frame& f) { return f.channel == channel; });
  if (mine != waiting_.end()) {
    Frame frame = *mine;
    waiting_.erase(mine);
    return frame;
  }
  const auto wanted = [&] {
    return "expected " + std::string(expected) + " on channel " + std::to_string(channel);
  };
  const auto deadline = TestClock::now() + limit;
  while (true) {
    Frame frame;
    switch (receive(frame, deadline)) {
      case FrameSocket::Arrival::timeout:
        throw Unexpected(wanted() + ", nothing came within " + std::to_string(limit.count()) +
                         " ms" + (waiting_.empty() ? "" : ", but " + describe(waiting_.front())));
      case FrameSocket::Arrival::ended:
        throw Unexpected(wanted() + ", the connection ended");
      case FrameSocket::Arrival::frame:
        break;
    }
    if (frame.channel == channel) return frame;
    const bool closes = frame.kind == FrameDecoder::Kind::method &&
                        peek_method_id(*frame.payload) == connection::Close::kId;
    if (closes) throw Unexpected(wanted() + ", got " + describe(frame));
    waiting_.push_back(std::move(frame));
  }
}

void WireClient::take_content(std::uint16_t channel, std::string& raw_properties, std::string& body,
                              std::vector<std::size_t>& body_frame_bytes) {
  const Frame frame = take(channel, "a content header");
  const auto header = frame.kind == FrameDecoder::Kind::header
                          ? ContentHeader::decode(*frame.payload)
                          : std::nullopt;
  if (!header) throw Unexpected("expected a content header, got " + describe(frame));
  if (header->class_id != basic::kClass)
    throw Unexpected("content header of class " + std::to_string(header->class_id));
  raw_properties = header->properties;
  if (!PropertiesView(raw_properties).ok()) throw Unexpected("malformed properties came");
  while (body.size() < header->body_size) {
    const Frame part = take(channel, "a body frame");
    if (part.kind != FrameDecoder::Kind::body || part.payload->empty())
      throw Unexpected("expected body bytes, got " + describe(part));
    body += *part.payload;
    body_frame_bytes.push_back(part.payload->size());
  }
  if (body.size() != header->body_size)
    throw Unexpected("body of " + std::to_string(body.size()) + " bytes where " +
                     std::to_string(header->body_size) + " were announced");
}

Confirm WireClient::expect_confirm(std::uint16_t channel) {
  const Frame frame = take(channel, "basic.ack or basic.nack");
  if (frame.kind == FrameDecoder::Kind::method) {
    if (const auto ack = decode_method<basic::Ack>(*frame.payload))
      return {ack->delivery_tag, ack->multiple, false};
    if (const auto nack = decode_method<basic::Nack>(*frame.payload))
      return {nack->delivery_tag, nack->multiple, true};
  }
  throw Unexpected("expected basic.ack or basic.nack, got " + describe(frame));
}

std::string WireClient::expect_channel_close(std::uint16_t channel, std::uint16_t code) {
  const auto close = expect<channel::Close>(channel);
  if (close.reply_code != code)
    throw Unexpected("expected channel.close " + std::to_string(code) + ", got " +
                     describe_method(*close.payload));
  send(channel, channel::CloseOk{});
  return close.reply_text.str();
}

std::string WireClient::expect_connection_close(std::uint16_t code, milliseconds limit) {
  std::erase_if(waiting_, [](const Frame& f) { return f.channel != 0; });
  const auto deadline = TestClock::now() + limit;
  const std::string wanted = "expected connection.close " + std::to_string(code);
  while (true) {
    Frame frame;
    if (!waiting_.empty()) {
      frame = waiting_.front();
      waiting_.pop_front();
    } else if (const auto arrival = receive(frame, deadline);
               arrival != FrameSocket::Arrival::frame) {
      throw Unexpected(wanted + (arrival == FrameSocket::Arrival::ended ? ", the connection ended"
                                                                        : ", nothing came"));
    }
    if (frame.channel != 0) continue;
    const auto close = decode<connection::Close>(frame);
    if (close.reply_code != code)
      throw Unexpected(wanted + ", got " + describe_method(*frame.payload));
    send(0, connection::CloseOk{});
    if (!socket_.receive_end(limit))
      throw Unexpected("the connection stayed open after connection.close-ok");
    return close.reply_text.str();
  }
}

void WireClient::expect_eof(milliseconds limit) {
  Frame frame;
  if (!waiting_.empty())
    throw Unexpected("expected the end of the connection, got " + describe(waiting_.front()));
  switch (receive(frame, TestClock::now() + limit)) {
    case FrameSocket::Arrival::ended:
      return;
    case FrameSocket::Arrival::timeout:
      throw Unexpected("expected the end of the connection, it stayed open");
    case FrameSocket::Arrival::frame:
      throw Unexpected("expected the end of the connection, got " + describe(frame));
  }
}

void WireClient::nothing_within(milliseconds duration) {
  Frame frame;
  if (!waiting_.empty()) throw Unexpected("expected nothing, got " + describe(waiting_.front()));
  switch (receive(frame, TestClock::now() + duration)) {
    case FrameSocket::Arrival::timeout:
      return;
    case FrameSocket::Arrival::ended:
      throw Unexpected("expected nothing, the connection ended");
    case FrameSocket::Arrival::frame:
      throw Unexpected("expected nothing, got " + describe(frame));
  }
}

void WireClient::nothing_within(milliseconds duration, std::uint16_t channel) {
  const auto deadline = TestClock::now() + duration;
  Frame frame;
  FrameSocket::Arrival arrival;
  while ((arrival = receive(frame, deadline)) == FrameSocket::Arrival::frame)
    waiting_.push_back(frame);
  if (arrival == FrameSocket::Arrival::ended)
    throw Unexpected("expected nothing, the connection ended");
  for (const Frame& f : waiting_)
    if (f.channel == channel) throw Unexpected("expected nothing, got " + describe(f));
}

void WireClient::expect_heartbeat(milliseconds limit) {
  const auto deadline = TestClock::now() + limit;
  Frame frame;
  while (TestClock::now() < deadline) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - TestClock::now());
    const auto arrival = socket_.receive(frame, left);
    if (arrival == FrameSocket::Arrival::ended)
      throw Unexpected("expected a heartbeat, the connection ended");
    if (arrival != FrameSocket::Arrival::frame) continue;
    if (frame.kind == FrameDecoder::Kind::heartbeat) {
      ++heartbeats_received_;
      return;
    }
    waiting_.push_back(frame);
  }
  throw Unexpected("no heartbeat came within " + std::to_string(limit.count()) + " ms");
}

}  // namespace stoat::test
