// Methods of class connection, and the opening and closing of channels.

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/connection.hpp"
#include "broker/decode.hpp"
#include "broker/log.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"

namespace stoat::broker {

namespace {

using wire::ConnectionErrorCode;
namespace connection = wire::connection;

constexpr ChannelNumber kChannelZero{0};

}  // namespace

asio::awaitable<void> Connection::handle_method() {
  const auto id = wire::peek_method_id(method_payload_);
  if (!id) throw wire::ConnectionError(ConnectionErrorCode::frame_error, "method frame too short");
  if (method_channel_ == kChannelZero) {
    co_await handle_connection_method(*id);
    co_return;
  }
  if (phase_ != Phase::running) {
    throw wire::ConnectionError(ConnectionErrorCode::channel_error,
                                "channel used before the connection is open", *id);
  }
  const ChannelNumber number = method_channel_;
  Channel* channel = find_channel(number);
  if (channel == nullptr) {
    if (*id == wire::channel::Open::kId) {
      decode_or_throw<wire::channel::Open>(method_payload_);
      co_await open_channel(number);
    } else if (*id != wire::channel::CloseOk::kId) {
      // A late close-ok is harmless: closes may have crossed.
      throw_no_channel(number);
    }
    co_return;
  }
  if (*id == wire::channel::CloseOk::kId || *id == wire::channel::Close::kId) {
    if (*id == wire::channel::CloseOk::kId && !channel->closing()) co_return;
    if (!channel->closing()) co_await channel->release();
    if (*id == wire::channel::Close::kId) {
      decode_or_throw<wire::channel::Close>(method_payload_);
      wire::append_method(output_.tail(), number, wire::channel::CloseOk{});
    }
    recent_channel_ = nullptr;
    channels_.erase(number);
    co_return;
  }
  std::optional<wire::ChannelError> failure;
  try {
    co_await channel->handle(*id, method_payload_);
  } catch (const wire::ChannelError& error) {
    failure = error;
    // Where the mistake was found the method may not be known.
    if (failure->method == wire::MethodId{}) failure->method = *id;
  }
  if (failure) co_await close_channel(number, *std::move(failure));
}

asio::awaitable<void> Connection::open_channel(ChannelNumber number) {
  if (number.value > handshake_.tuning().channel_max) {
    throw wire::ConnectionError(ConnectionErrorCode::not_allowed,
                                "channel number " + std::to_string(number.value) +
                                    " is above the negotiated channel_max (" +
                                    std::to_string(handshake_.tuning().channel_max) + ")",
                                wire::channel::Open::kId);
  }
  last_incarnation_ = last_incarnation_.next();
  channels_.emplace(number, std::make_unique<Channel>(*this, number, last_incarnation_));
  wire::append_method(output_.tail(), number, wire::channel::OpenOk{});
  co_return;
}

// Tells the peer; the number is free again after its close-ok.
asio::awaitable<void> Connection::close_channel(ChannelNumber number, wire::ChannelError error) {
  Channel* channel = find_channel(number);
  STOAT_ASSERT(channel != nullptr, number);
  channel->flush_confirms();
  channel->set_closing();
  wire::append_method(output_.tail(), number,
                      wire::channel::Close{static_cast<std::uint16_t>(error.code), error.text,
                                           error.method.class_id, error.method.method_id});
  log::info("connection " + peer_ + " channel " + std::to_string(number.value) +
            " closed: " + error.text);
  co_await channel->release();
}

asio::awaitable<void> Connection::handle_connection_method(wire::MethodId id) {
  if (id == connection::Close::kId) {
    decode_or_throw<connection::Close>(method_payload_);
    client_closed_ = true;
    co_return;
  }
  if (id == connection::CloseOk::kId) co_return;  // answers no close of ours; harmless
  if (!handshake_.done()) {
    handshake_.on_method(method_payload_, output_.tail());
    if (!handshake_.done()) co_return;
    decoder_.set_frame_max(handshake_.tuning().frame_max_bytes);
    vhost_ = worker_.replica().find_vhost(client().vhost);
    phase_ = Phase::running;
    deadline_ = SteadyTime::max();
    last_received_ = last_sent_ = worker_.now();
    worker_.schedule_tick(tick(worker_.now()));
    log::info(
        "connection " + peer_ + " opened: user '" + client().user + "', vhost '" + client().vhost +
        "'" +
        (client().connection_name.empty() ? "" : ", name '" + client().connection_name + "'"));
    co_return;
  }
  if (id == connection::UpdateSecret::kId) {
    decode_or_throw<connection::UpdateSecret>(method_payload_);
    update_secret();
    co_return;
  }
  throw wire::ConnectionError(id.class_id == connection::kClass && id.method_id <= 71
                                  ? ConnectionErrorCode::channel_error
                                  : ConnectionErrorCode::command_invalid,
                              "unexpected method on channel 0", id);
}

// Rights are looked at anew; whoever lost them has to go.
void Connection::update_secret() {
  permissions_ = nullptr;
  if (permissions() == nullptr) {
    throw wire::ConnectionError(
        ConnectionErrorCode::not_allowed,
        "access to vhost '" + client().vhost + "' refused for user '" + client().user + "'",
        connection::UpdateSecret::kId);
  }
  wire::append_method(output_.tail(), kChannelZero, connection::UpdateSecretOk{});
}

void Connection::note_publisher() {
  if (publisher_) return;
  publisher_ = true;
  send_blocked();
}

void Connection::on_alarm() {
  send_blocked();
  if (!held_back()) wake();
}

void Connection::send_blocked() {
  const bool blocked = publisher_ && !worker_.alarm().empty();
  if (blocked == blocked_sent_ || phase_ != Phase::running) return;
  blocked_sent_ = blocked;
  if (!client().blocked_notify) return;
  if (blocked) {
    wire::append_method(output_.tail(), kChannelZero, connection::Blocked{worker_.alarm()});
  } else {
    wire::append_method(output_.tail(), kChannelZero, connection::Unblocked{});
  }
  mark_dirty();
}

}  // namespace stoat::broker
