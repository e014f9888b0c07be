#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/connection_machine.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/confirm.hpp"
#include "wire/connection.hpp"
#include "wire/exchange.hpp"
#include "wire/queue.hpp"

namespace stoat::client::test {

using namespace std::chrono_literals;

// What a completion was called with, and how often.
template <class T>
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  Completion<T> completion() {
    return [this](Result<T> result) {
      ++calls_;
      result_.emplace(std::move(result));
    };
  }
  int calls() const { return calls_; }
  bool pending() const { return calls_ == 0; }
  bool succeeded() const { return calls_ == 1 && result_->has_value(); }
  bool failed() const { return calls_ == 1 && result_->has_error(); }
  typename Result<T>::Value& value() { return **result_; }
  const Error& error() const { return result_->error(); }

 private:
  int calls_ = 0;
  std::optional<Result<T>> result_;
};

// A ConnectionMachine and the broker at its other end, as queues of frames: send() is what the
// broker says, sent() takes the next frame of the client and checks what it is. Time stands still
// until advance().
class Conversation {
 public:
  static ConnectionOptions quick_options() {
    ConnectionOptions options("test");
    options.rpc_timeout = 1000ms;
    options.publish_timeout = 3000ms;
    return options;
  }

  explicit Conversation(ConnectionOptions options = quick_options(), Uri uri = {})
      : machine(std::move(uri), std::move(options)) {}

  ConnectionMachine machine;
  SteadyTime now{};
  Answer<void> opened;

  void start() {
    machine.start(now, now + 10s, opened.completion());
    EXPECT_EQ(sent_bytes(8), wire::kProtocolHeader);
  }
  // Through the login, to an open connection.
  void log_in(wire::connection::Tune tune = {2047, 131'072, 60}) {
    start();
    send(0, wire::connection::Start{
                .server_properties = {}, .mechanisms = "PLAIN AMQPLAIN", .locales = "en_US"});
    sent<wire::connection::StartOk>(0);
    send(0, tune);
    sent<wire::connection::TuneOk>(0);
    sent<wire::connection::Open>(0);
    send(0, wire::connection::OpenOk{});
    EXPECT_TRUE(opened.succeeded());
  }
  // An open channel with the next free number.
  ChannelMachine& open_channel(std::uint16_t expected_number = 1) {
    Answer<ChannelIncarnation> answer;
    machine.open_channel(answer.completion());
    sent<wire::channel::Open>(expected_number);
    send(expected_number, wire::channel::OpenOk{});
    EXPECT_TRUE(answer.succeeded());
    return *machine.channel(answer.value());
  }

  template <class Method>
  void send(std::uint16_t channel, const Method& method) {
    std::string bytes;
    wire::append_method(bytes, ChannelNumber(channel), method);
    receive(bytes);
  }
  // A method that carries content, whole.
  template <class Method>
  void send_content(std::uint16_t channel, const Method& method, std::string_view body,
                    const wire::Properties& properties = {}) {
    std::string bytes;
    wire::append_method(bytes, ChannelNumber(channel), method);
    wire::append_content_header(bytes, ChannelNumber(channel), body.size(), properties.encode());
    wire::append_body(bytes, ChannelNumber(channel), body, 4096);
    receive(bytes);
  }
  void receive(std::string_view bytes) {
    if (!split_input) return machine.receive(bytes, now);
    for (const char& byte : bytes) machine.receive({&byte, 1}, now);
  }
  bool split_input = false;  // every byte by itself

  void advance(std::chrono::milliseconds time) {
    now += time;
    if (machine.next_deadline() <= now) machine.tick(now);
    machine.set_now(now);
  }

  // The client's next frame, which must be this method on this channel. Views in it live as long
  // as the conversation.
  template <class Method>
  Method sent(std::uint16_t channel) {
    const auto frame = next_frame();
    if (!frame) {
      ADD_FAILURE() << "the client sent nothing";
      return {};
    }
    EXPECT_EQ(frame->channel.value, channel);
    EXPECT_EQ(frame->kind, wire::FrameDecoder::Kind::method);
    const std::string& payload = kept_.emplace_back(frame->payload);
    const auto method = wire::decode_method<Method>(payload);
    EXPECT_TRUE(method) << "another method";
    return method.value_or(Method{});
  }
  struct Published {
    wire::basic::Publish method;
    wire::Properties properties;
    std::string body;
    std::vector<std::size_t> body_frame_bytes;
  };
  Published sent_publish(std::uint16_t channel) {
    Published published;
    published.method = sent<wire::basic::Publish>(channel);
    const auto header_frame = next_frame();
    const auto header = header_frame ? wire::ContentHeader::decode(header_frame->payload)
                                     : std::optional<wire::ContentHeader>();
    if (!header) {
      ADD_FAILURE() << "no content header";
      return published;
    }
    published.properties = wire::PropertiesView(header->properties).parse();
    while (published.body.size() < header->body_size) {
      const auto body = next_frame();
      if (!body || body->kind != wire::FrameDecoder::Kind::body) {
        ADD_FAILURE() << "no body frame";
        return published;
      }
      published.body += body->payload;
      published.body_frame_bytes.push_back(body->payload.size() + wire::kFrameOverheadBytes);
    }
    return published;
  }
  bool sent_nothing() {
    take_output();
    return frames_.empty();
  }
  // The channel of the client's next frame; 0 when there is none.
  std::uint16_t next_channel() {
    take_output();
    return frames_.empty() ? std::uint16_t{0} : frames_.front().channel.value;
  }
  bool sent_heartbeat() {
    const auto frame = next_frame();
    return frame && frame->kind == wire::FrameDecoder::Kind::heartbeat;
  }
  std::string sent_bytes(std::size_t size) {
    std::string bytes;
    machine.take_output(bytes);
    machine.output_written(now);
    EXPECT_EQ(bytes.size(), size);
    return bytes;
  }
  // False: the socket takes nothing, and output is left in the machine.
  bool socket_takes_output = true;

 private:
  struct Frame {
    wire::FrameDecoder::Kind kind;
    ChannelNumber channel;
    std::string payload;
  };
  void take_output() {
    while (socket_takes_output && machine.has_output()) {
      std::string bytes;
      machine.take_output(bytes);
      machine.output_written(now);
      std::string_view input = bytes;
      for (auto event = decoder_.next(input); event.kind != wire::FrameDecoder::Kind::need_more;
           event = decoder_.next(input)) {
        ASSERT_NE(event.kind, wire::FrameDecoder::Kind::error) << event.error_text;
        frames_.push_back({event.kind, event.channel, std::string(event.payload)});
      }
    }
  }
  std::optional<Frame> next_frame() {
    take_output();
    if (frames_.empty()) return std::nullopt;
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

  wire::FrameDecoder decoder_{1 << 20};
  std::deque<Frame> frames_;
  std::list<std::string> kept_;  // payloads that views point into
};

inline Publisher::Publish make_publish(std::string routing_key, std::string body,
                                       Completion<PublishResult> done, bool mandatory = false) {
  Publisher::Publish publish;
  publish.exchange = "shop";
  publish.routing_key = std::move(routing_key);
  publish.properties = wire::Properties{}.encode();
  publish.body = std::move(body);
  publish.mandatory = mandatory;
  publish.done = std::move(done);
  return publish;
}

}  // namespace stoat::client::test
