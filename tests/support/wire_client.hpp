#pragma once

#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/frame_socket.hpp"
#include "tests/support/method_names.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/confirm.hpp"
#include "wire/connection.hpp"
#include "wire/exchange.hpp"
#include "wire/properties.hpp"
#include "wire/queue.hpp"
#include "wire/tx.hpp"

namespace stoat::test {

// A reply that should be there takes this long at most; only failing tests ever wait for it.
inline constexpr milliseconds kReplyLimit{15'000};

// Something else came than was expected: what() says what was expected and what came.
class Unexpected : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A decoded method together with the bytes its views point into.
template <class M>
struct Received : M {
  Received() = default;
  Received(M method, std::shared_ptr<const std::string> bytes)
      : M(std::move(method)), payload(std::move(bytes)) {}
  std::shared_ptr<const std::string> payload;
};

// A method with content: deliver, get-ok or return.
template <class M>
struct Content {
  Received<M> method;
  std::string raw_properties;  // flags and list as they came
  std::string body;
  std::vector<std::size_t> body_frame_bytes;  // payload size of each body frame
  wire::Properties properties() const { return wire::PropertiesView(raw_properties).parse(); }
};
using Delivery = Content<wire::basic::Deliver>;
using Gotten = Content<wire::basic::GetOk>;
using Returned = Content<wire::basic::Return>;

// basic.ack or basic.nack from the broker.
struct Confirm {
  std::uint64_t tag = 0;
  bool multiple = false;
  bool nack = false;
};

struct ConnectOptions {
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";
  std::string mechanism = "PLAIN";
  std::uint32_t frame_max = 131072;
  std::uint16_t channel_max = 2047;
  std::uint16_t heartbeat = 0;
  wire::Table client_properties = all_capabilities();

  static wire::Table all_capabilities();
};

// "\0user\0password" or AMQPLAIN's table, as the mechanism wants it.
std::string sasl_response(const ConnectOptions& options);

// A blocking AMQP client for tests: it says exactly what it is told to say, checks that exactly the
// expected method comes on a channel, and tells what came instead. Frames of other channels wait
// until somebody asks for them; heartbeats are only counted.
//
// Owner: one test. Thread: one.
// Errors: Unexpected, which GoogleTest reports as the failure's text.
// Does not: reconnect, answer anything by itself beyond what a helper's comment says.
class WireClient {
 public:
  // Connected on TCP, nothing sent yet.
  explicit WireClient(std::uint16_t port) : socket_(port) {}
  // The whole handshake up to connection.open-ok; channel 1 is open.
  WireClient(std::uint16_t port, const ConnectOptions& options);
  WireClient(WireClient&&) = default;

  // --- handshake in steps ---
  void send_protocol_header() { send_raw(wire::kProtocolHeader); }
  Received<wire::connection::Start> expect_start();  // sends the header first
  void send_start_ok(const ConnectOptions& options);
  void login(const ConnectOptions& options);  // header … connection.open-ok, no channel
  const wire::connection::Tune& tune() const { return tune_; }

  // --- sending ---
  void send_raw(std::string_view bytes) { socket_.send(bytes); }
  template <class M>
  void send(std::uint16_t channel, const M& method) {
    std::string out;
    wire::append_method(out, ChannelNumber(channel), method);
    send_raw(out);
  }
  void send_heartbeat() { send_raw(wire::kHeartbeatFrame); }

  // --- expecting ---
  // The next frame of the channel is method M.
  template <class M>
  Received<M> expect(std::uint16_t channel, milliseconds limit = kReplyLimit) {
    return decode<M>(take(channel, method_name(M::kId), limit));
  }
  template <class Reply, class M>
  Received<Reply> call(std::uint16_t channel, const M& method) {
    send(channel, method);
    return expect<Reply>(channel);
  }
  template <class M>
  Content<M> expect_content(std::uint16_t channel, milliseconds limit = kReplyLimit) {
    Content<M> content;
    content.method = expect<M>(channel, limit);
    take_content(channel, content.raw_properties, content.body, content.body_frame_bytes);
    return content;
  }
  Delivery expect_delivery(std::uint16_t channel, milliseconds limit = kReplyLimit) {
    return expect_content<wire::basic::Deliver>(channel, limit);
  }
  Confirm expect_confirm(std::uint16_t channel);
  // channel.close with this code comes, and is answered; returns its text.
  std::string expect_channel_close(std::uint16_t channel, std::uint16_t code);
  // connection.close with this code comes, is answered, and the connection ends. Frames that came
  // before it on other channels are passed over. Returns its text.
  std::string expect_connection_close(std::uint16_t code, milliseconds limit = kReplyLimit);
  // The broker ends the connection; frames before that are failures.
  void expect_eof(milliseconds limit = kReplyLimit);
  // Nothing but heartbeats comes, on any channel or on the one given.
  void nothing_within(milliseconds duration);
  void nothing_within(milliseconds duration, std::uint16_t channel);
  // At least one more heartbeat comes within the limit.
  void expect_heartbeat(milliseconds limit);
  // The next frame of the channel, whatever it is.
  Frame take(std::uint16_t channel, std::string_view expected, milliseconds limit = kReplyLimit);

  // --- what tests do all the time; all wait for the -ok ---
  void open_channel(std::uint16_t channel);
  void close_channel(std::uint16_t channel);
  void close();  // connection.close, close-ok, end of the connection
  Received<wire::queue::DeclareOk> declare_queue(std::uint16_t channel, std::string_view queue,
                                                 const wire::Table& arguments = {},
                                                 bool durable = false);
  void declare_exchange(std::uint16_t channel, std::string_view exchange, std::string_view type,
                        const wire::Table& arguments = {});
  void bind(std::uint16_t channel, std::string_view queue, std::string_view exchange,
            std::string_view routing_key, const wire::Table& arguments = {});
  void bind_exchange(std::uint16_t channel, std::string_view destination, std::string_view source,
                     std::string_view routing_key, const wire::Table& arguments = {});
  std::uint32_t delete_queue(std::uint16_t channel, std::string_view queue);
  void delete_exchange(std::uint16_t channel, std::string_view exchange);
  std::uint32_t ready_count(std::uint16_t channel, std::string_view queue);  // passive declare
  void qos(std::uint16_t channel, std::uint16_t prefetch_count, bool global = false);
  void confirm_select(std::uint16_t channel);
  std::string consume(std::uint16_t channel, std::string_view queue, std::string_view tag = "",
                      bool no_ack = false, const wire::Table& arguments = {});
  void cancel(std::uint16_t channel, std::string_view tag);
  std::optional<Gotten> get(std::uint16_t channel, std::string_view queue, bool no_ack = true);
  // basic.get with no_ack until the queue is empty.
  std::vector<Gotten> drain(std::uint16_t channel, std::string_view queue);

  // --- these have no -ok ---
  void publish(std::uint16_t channel, std::string_view exchange, std::string_view routing_key,
               std::string_view body, const wire::Properties& properties = {},
               bool mandatory = false);
  // Content header and body frames of at most frame_max.
  void send_content(std::uint16_t channel, std::string_view raw_properties, std::string_view body);
  void ack(std::uint16_t channel, std::uint64_t tag, bool multiple = false);
  void nack(std::uint16_t channel, std::uint64_t tag, bool multiple, bool requeue);
  void reject(std::uint16_t channel, std::uint64_t tag, bool requeue);

  // Collects acks and nacks until tags 1 … count are settled, each exactly once; true: acked.
  std::vector<bool> collect_confirms(std::uint16_t channel, std::uint64_t count,
                                     std::uint64_t first = 1);

  FrameSocket& socket() { return socket_; }
  std::uint32_t frame_max() const { return frame_max_; }
  std::uint64_t heartbeats_received() const { return heartbeats_received_; }

 private:
  template <class M>
  static Received<M> decode(const Frame& frame) {
    auto method = frame.kind == wire::FrameDecoder::Kind::method
                      ? wire::decode_method<M>(*frame.payload)
                      : std::nullopt;
    if (!method) throw Unexpected("expected " + method_name(M::kId) + ", got " + describe(frame));
    return Received<M>(std::move(*method), frame.payload);
  }
  // From the socket, heartbeats left out.
  FrameSocket::Arrival receive(Frame& frame, TestClock::time_point deadline);
  void take_content(std::uint16_t channel, std::string& raw_properties, std::string& body,
                    std::vector<std::size_t>& body_frame_bytes);

  FrameSocket socket_;
  std::deque<Frame> waiting_;  // frames of channels nobody asked for yet
  wire::connection::Tune tune_;
  std::uint32_t frame_max_ = wire::kMinFrameMaxBytes;
  std::uint64_t heartbeats_received_ = 0;
};

std::vector<std::string> bodies(const std::vector<Gotten>& messages);

}  // namespace stoat::test
