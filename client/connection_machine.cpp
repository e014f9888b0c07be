#include "client/connection_machine.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "client/handshake.hpp"
#include "client/send_method.hpp"
#include "wire/channel.hpp"
#include "wire/connection.hpp"

namespace stoat::client {

namespace {

namespace connection = wire::connection;
using wire::ConnectionErrorCode;

constexpr ChannelNumber kConnectionChannel{0};
constexpr std::uint16_t kAccessRefused = 403;
constexpr std::uint16_t kNotAllowed = 530;

template <class Method>
Method decoded(std::string_view payload) {
  auto method = wire::decode_method<Method>(payload);
  if (!method)
    throw wire::ConnectionError(ConnectionErrorCode::syntax_error, "malformed arguments",
                                Method::kId);
  return std::move(*method);
}

// Unique in the process, so that a delivery cannot be settled on another connection's channel.
ChannelIncarnation next_incarnation() {
  static std::atomic<std::uint32_t> last{0};
  return ChannelIncarnation(++last);
}

}  // namespace

ConnectionMachine::ConnectionMachine(Uri uri, ConnectionOptions options)
    : context_(std::move(options)), uri_(std::move(uri)), decoder_(context_.frame_max_bytes) {}

template <class Method>
void ConnectionMachine::send(const Method& method) {
  wire::append_method(context_.output, kConnectionChannel, method);
}

// --- Login ---------------------------------------------------------------------------------------

void ConnectionMachine::start(SteadyTime now, SteadyTime deadline, Completion<void> opened) {
  STOAT_ASSERT(state_ == State::idle);
  context_.now = last_received_ = last_sent_ = now;
  opened_ = std::move(opened);
  open_deadline_ = deadline;
  context_.next_deadline = std::min(context_.next_deadline, deadline);
  context_.output.append(wire::kProtocolHeader);
  state_ = State::start;
}

bool ConnectionMachine::takes_protocol_header(std::string_view bytes) {
  if (!received_any_ && bytes.starts_with('A')) other_header_.emplace();
  if (!other_header_) return false;
  other_header_->append(bytes.substr(0, wire::kProtocolHeader.size() - other_header_->size()));
  if (other_header_->size() == wire::kProtocolHeader.size()) {
    const auto number = [&](std::size_t i) {
      return std::to_string(static_cast<unsigned char>((*other_header_)[i]));
    };
    end(Error(ErrorKind::protocol_violation,
              "the peer wants protocol " + other_header_->substr(0, 4) + ' ' + number(5) + '-' +
                  number(6) + '-' + number(7) + " instead of AMQP 0-9-1"));
  }
  return true;
}

void ConnectionMachine::on_start(std::string_view payload) {
  const auto start = decoded<connection::Start>(payload);
  if (auto error = check_start(start)) return end(*error);
  const std::string response = plain_response(uri_);
  const connection::StartOk start_ok{.client_properties = client_properties(context_.options),
                                     .mechanism = "PLAIN",
                                     .response = response,
                                     .locale = "en_US"};
  if (auto error = send_method(context_, kConnectionChannel, start_ok)) return end(*error);
  state_ = State::tune;
}

void ConnectionMachine::on_tune(std::string_view payload) {
  const Tuned tuned = negotiate(decoded<connection::Tune>(payload), context_.options);
  if (tuned.error) return end(*tuned.error);
  send(connection::TuneOk{.channel_max = tuned.channel_max,
                          .frame_max = tuned.frame_max_bytes,
                          .heartbeat = tuned.heartbeat_seconds});
  channel_max_ = tuned.channel_max;
  context_.frame_max_bytes = tuned.frame_max_bytes;
  decoder_.set_frame_max(tuned.frame_max_bytes);
  heartbeat_ = std::chrono::seconds(tuned.heartbeat_seconds);
  if (tuned.heartbeat_seconds != 0) context_.deadline_after(heartbeat_ / 2);
  if (auto error = send_method(context_, kConnectionChannel,
                               connection::Open{.virtual_host = uri_.vhost, .reserved_1 = {}}))
    return end(*error);
  state_ = State::open_ok;
}

void ConnectionMachine::on_open_ok() {
  state_ = State::open;
  open_deadline_ = SteadyTime::max();
  std::exchange(opened_, {})({});
}

// --- What comes in -------------------------------------------------------------------------------

void ConnectionMachine::receive(std::string_view bytes, SteadyTime now) {
  if (bytes.empty() || finished()) return;
  context_.now = last_received_ = now;
  if (takes_protocol_header(bytes)) return;
  received_any_ = true;
  try {
    for (auto event = decoder_.next(bytes); event.kind != wire::FrameDecoder::Kind::need_more;
         event = decoder_.next(bytes)) {
      handle(event);
      if (finished()) return;
    }
  } catch (const wire::ConnectionError& error) {
    break_off(error);
  }
}

void ConnectionMachine::handle(const wire::FrameDecoder::Event& event) {
  using Kind = wire::FrameDecoder::Kind;
  if (event.kind == Kind::heartbeat) return;
  if (event.kind == Kind::error)
    throw wire::ConnectionError(event.unexpected_frame ? ConnectionErrorCode::unexpected_frame
                                                       : ConnectionErrorCode::frame_error,
                                event.error_text);
  if (event.channel != kConnectionChannel) return on_channel_frame(event);
  if (event.kind != Kind::method)
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame, "content on channel 0");
  on_connection_method(event.payload);
}

void ConnectionMachine::on_connection_method(std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (!id) throw wire::ConnectionError(ConnectionErrorCode::frame_error, "method frame too short");
  if (*id == connection::Close::kId) return on_close(payload);
  if (state_ == State::closing) {
    if (*id == connection::CloseOk::kId) end(*reason_);
    return;
  }
  if (state_ == State::start && *id == connection::Start::kId) return on_start(payload);
  if (state_ == State::tune && *id == connection::Tune::kId) return on_tune(payload);
  if (state_ == State::open_ok && *id == connection::OpenOk::kId) return on_open_ok();
  if (state_ == State::open && *id == connection::Blocked::kId) {
    context_.blocked_reason = decoded<connection::Blocked>(payload).reason.str();
    return;
  }
  if (state_ == State::open && *id == connection::Unblocked::kId) {
    context_.blocked_reason.reset();
    return;
  }
  throw wire::ConnectionError(ConnectionErrorCode::command_invalid,
                              "a method that is not due on channel 0", *id);
}

void ConnectionMachine::on_channel_frame(const wire::FrameDecoder::Event& event) {
  using Kind = wire::FrameDecoder::Kind;
  if (state_ == State::closing) return;
  const auto it = by_number_.find(event.channel);
  if (it == by_number_.end()) {
    // The broker's answer to our close, after both sides closed the channel at once.
    if (event.kind == Kind::method &&
        wire::peek_method_id(event.payload) == wire::channel::CloseOk::kId)
      return;
    throw wire::ConnectionError(ConnectionErrorCode::channel_error,
                                "frame for a channel that is not open");
  }
  ChannelMachine& channel = *it->second;
  try {
    if (event.kind == Kind::method)
      channel.on_method(event.payload);
    else if (event.kind == Kind::header)
      channel.on_header(event.payload);
    else
      channel.on_body(event.payload);
  } catch (const wire::ChannelError& error) {
    channel.close_for(error);
  }
  forget_if_ended(channel);
}

void ConnectionMachine::on_close(std::string_view payload) {
  const auto close = decoded<connection::Close>(payload);
  send(connection::CloseOk{});
  if (state_ == State::closing) return end(*reason_);
  const bool login = state_ != State::open;
  const bool refused =
      login && (close.reply_code == kAccessRefused || close.reply_code == kNotAllowed);
  end(Error(refused ? ErrorKind::access_refused : ErrorKind::connection_closed,
            refused ? "the broker refused the login" : "the broker closed the connection",
            close.reply_code, close.reply_text));
}

// --- Ends ----------------------------------------------------------------------------------------

void ConnectionMachine::socket_lost(const std::string& why, SteadyTime now) {
  if (finished()) return;
  context_.now = now;
  if (state_ == State::closing) return end(*reason_);
  if (state_ == State::tune)
    return end(
        Error(ErrorKind::access_refused, "the broker dropped the connection at the login (" + why +
                                             "), as many do when user or password are wrong"));
  end(Error(ErrorKind::network, "connection lost: " + why));
}

void ConnectionMachine::break_off(const wire::ConnectionError& error) {
  const auto code = static_cast<std::uint16_t>(error.code);
  if (state_ == State::open_ok || state_ == State::open)
    send(connection::Close{.reply_code = code,
                           .reply_text = error.text,
                           .class_id = error.method.class_id,
                           .method_id = error.method.method_id});
  end(Error(ErrorKind::protocol_violation, "the peer broke the protocol", code, error.text));
}

void ConnectionMachine::fail_pending(const Error& reason) {
  by_number_.clear();
  for (auto it = channels_.begin(); it != channels_.end();) {
    it->second->end(reason);
    it = it->second->released() ? channels_.erase(it) : std::next(it);
  }
}

void ConnectionMachine::end(const Error& reason) {
  if (finished()) return;
  state_ = State::ended;
  if (!reason_) reason_ = reason;
  fail_pending(reason);
  context_.next_deadline = SteadyTime::max();
  if (opened_) std::exchange(opened_, {})(reason);
  if (close_done_) std::exchange(close_done_, {})({});
}

void ConnectionMachine::close(Completion<void> done) {
  if (finished() || state_ == State::closing) return done({});
  const Error reason(ErrorKind::closed, "the connection was closed by this program");
  if (state_ != State::open) {
    end(reason);
    return done({});
  }
  send(connection::Close{.reply_code = wire::kReplySuccess, .reply_text = "closed by the client"});
  state_ = State::closing;
  reason_ = reason;
  close_done_ = std::move(done);
  close_deadline_ = context_.deadline_after(context_.options.rpc_timeout);
  fail_pending(reason);
}

// --- Time and output -----------------------------------------------------------------------------

void ConnectionMachine::tick(SteadyTime now) {
  context_.now = now;
  context_.next_deadline = SteadyTime::max();
  if (finished()) return;
  if (open_deadline_ <= now)
    return end(Error(ErrorKind::timeout, "the broker did not finish the login in time"));
  if (close_deadline_ <= now) {
    std::exchange(close_done_, {})(context_.timeout_error());
    return end(*reason_);
  }
  context_.next_deadline = std::min(open_deadline_, close_deadline_);
  for (const auto& [number, channel] : by_number_) channel->tick();
  // A channel that has ended may still hold deliveries, but nothing of it waits.
  check_heartbeat();
}

void ConnectionMachine::check_heartbeat() {
  if (heartbeat_.count() == 0) return;
  // A peer's silence counts only while it is listened to.
  if (!wants_read()) last_received_ = context_.now;
  if (context_.now - last_received_ >= 2 * heartbeat_)
    return end(Error(ErrorKind::network, "connection lost: the broker sent nothing for " +
                                             std::to_string(2 * heartbeat_.count()) + " ms"));
  if (context_.now - last_sent_ >= heartbeat_ / 2) {
    // With bytes under way a heartbeat tells nothing more.
    if (context_.output.empty() && context_.writing_bytes == 0)
      context_.output.append(wire::kHeartbeatFrame);
    last_sent_ = context_.now;
  }
  context_.next_deadline = std::min(
      {context_.next_deadline, last_sent_ + heartbeat_ / 2, last_received_ + 2 * heartbeat_});
}

bool ConnectionMachine::wants_read() const {
  const std::size_t limit = context_.options.max_buffered_bytes;
  if (context_.buffered_bytes < limit || state_ != State::open) return true;
  if (context_.buffered_bytes / kMaxOvershoot >= limit) return false;
  return std::any_of(by_number_.begin(), by_number_.end(),
                     [](const auto& entry) { return entry.second->awaited(); });
}

void ConnectionMachine::take_output(std::string& buffer) {
  STOAT_ASSERT(context_.writing_bytes == 0, context_.writing_bytes);
  buffer.clear();
  buffer.swap(context_.output);
  context_.writing_bytes = buffer.size();
}

void ConnectionMachine::output_written(SteadyTime now) {
  context_.now = last_sent_ = now;
  const bool had_room = context_.room_to_send();
  context_.writing_bytes = 0;
  if (!had_room && context_.room_to_send()) pump_channels();
}

void ConnectionMachine::pump_channels() {
  // Each time from the next channel on, so that none takes all the room for good.
  const auto first = by_number_.upper_bound(last_pumped_);
  if (first != by_number_.end())
    last_pumped_ = first->first;
  else
    last_pumped_ = ChannelNumber(0);
  for (auto it = first; it != by_number_.end(); ++it) it->second->pump();
  for (auto it = by_number_.begin(); it != first; ++it) it->second->pump();
}

// --- Channels ------------------------------------------------------------------------------------

std::optional<ChannelNumber> ConnectionMachine::free_number() {
  if (by_number_.size() >= channel_max_) return std::nullopt;
  do {
    last_number_ = last_number_.value >= channel_max_ ? ChannelNumber(1) : last_number_.next();
  } while (by_number_.contains(last_number_));
  return last_number_;
}

void ConnectionMachine::open_channel(Completion<ChannelIncarnation> done) {
  if (state_ != State::open) return done(gone_reason());
  const auto number = free_number();
  if (!number)
    return done(Error(ErrorKind::limit_reached,
                      "all " + std::to_string(channel_max_) + " channels are in use"));
  const ChannelIncarnation incarnation = next_incarnation();
  auto channel = std::make_unique<ChannelMachine>(context_, *number, incarnation);
  ChannelMachine& opening = *channel;
  channels_.emplace(incarnation, std::move(channel));
  by_number_.emplace(*number, &opening);
  opening.open([incarnation, done = std::move(done)](Result<void> result) mutable {
    if (result.has_error()) return done(result.error());
    done(incarnation);
  });
}

ChannelMachine* ConnectionMachine::channel(ChannelIncarnation incarnation) {
  const auto it = channels_.find(incarnation);
  return it == channels_.end() || it->second->released() ? nullptr : it->second.get();
}

void ConnectionMachine::release_channel(ChannelIncarnation incarnation) {
  ChannelMachine* held = channel(incarnation);
  if (held == nullptr) return;
  held->release();
  forget_if_ended(*held);
}

void ConnectionMachine::forget_if_ended(ChannelMachine& channel) {
  if (!channel.ended()) return;
  const auto it = by_number_.find(channel.number());
  if (it != by_number_.end() && it->second == &channel) by_number_.erase(it);
  if (channel.released()) channels_.erase(channel.incarnation());
}

Error ConnectionMachine::gone_reason() const {
  return reason_ ? *reason_ : Error(ErrorKind::closed, "the channel was closed by this program");
}

}  // namespace stoat::client
