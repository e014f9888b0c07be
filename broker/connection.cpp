#include "broker/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <optional>

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/control.hpp"
#include "broker/decode.hpp"
#include "broker/log.hpp"
#include "broker/password.hpp"
#include "broker/peer_address.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"

namespace stoat::broker {

namespace {

using asio::ip::tcp;
using wire::ConnectionErrorCode;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr ChannelNumber kChannelZero{0};

Tuning offered_tuning(const Config& config) {
  return {config.channel_max, config.frame_max, config.heartbeat_s};
}

}  // namespace

Connection::Connection(Worker& worker, ConnectionId id, tcp::socket socket)
    : worker_(worker),
      id_(id),
      socket_(std::move(socket)),
      peer_(peer_text(socket_)),
      wake_(worker.io()),
      output_(worker.buffers()),
      decoder_(kHandshakeFrameMaxBytes),
      handshake_(*this, offered_tuning(worker.config()), is_loopback(socket_), "stoat"),
      staged_(worker.worker_count()),
      last_received_(worker.now()),
      last_sent_(worker.now()),
      last_taken_(worker.now()) {
  start_deadline(std::chrono::milliseconds(worker.config().handshake_timeout_ms));
}

Connection::~Connection() = default;

void Connection::start() {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  asio::co_spawn(
      worker_.io(), [self = shared_from_this()] { return self->run(); }, asio::detached);
}

// --- login directory ---

bool Connection::password_matches(std::string_view user, std::string_view password) const {
  const UserDef* known = worker_.replica().find_user(user);
  return known != nullptr &&
         broker::password_matches(password, known->password_hash, known->hashing_algorithm);
}

bool Connection::vhost_exists(std::string_view vhost) const {
  return worker_.replica().find_vhost(vhost) != nullptr;
}

bool Connection::may_use_vhost(std::string_view user, std::string_view vhost) const {
  return worker_.replica().permissions(user, vhost) != nullptr;
}

std::span<const std::string> Connection::user_tags() const {
  const UserDef* user = worker_.replica().find_user(client().user);
  if (user == nullptr) return {};
  return user->tags;
}

const Permissions* Connection::permissions() {
  const std::uint64_t generation = worker_.replica().rights_generation();
  if (permissions_generation_ != generation || permissions_ == nullptr) {
    permissions_ = worker_.replica().permissions(client().user, client().vhost);
    permissions_generation_ = generation;
  }
  return permissions_.get();
}

// --- the coroutine ---

asio::awaitable<void> Connection::run() {
  std::chrono::milliseconds login_delay{0};
  try {
    if (co_await greet()) {
      co_await open();
      co_await serve();
    }
  } catch (const wire::ConnectionError& error) {
    if (!error_) error_ = error;
  } catch (const LoginRefused& refused) {
    log::warn("connection " + peer_ + " refused: user '" + client().user + "': " + refused.reason);
    end_reason_ = "login refused";
    if (refused.tell) {
      error_.emplace(ConnectionErrorCode::access_refused, "");
      error_->text = refused.text;
    } else {
      login_delay = std::chrono::milliseconds(worker_.config().login_failure_delay_ms);
    }
  }
  if (login_delay.count() > 0) {
    deadline_ = SteadyTime::max();
    wake_.expires_after(login_delay);
    co_await wake_.async_wait(kAwait);
  }
  const bool was_open = vhost_ != nullptr;
  phase_ = Phase::closing;
  co_await release_everything();
  co_await finish();
  phase_ = Phase::closed;
  drop_socket();
  if (was_open) {
    if (end_reason_.empty()) end_reason_ = client_closed_ ? "closed by client" : "peer went away";
    if (error_) end_reason_ = error_->text;
    log::info("connection " + peer_ + " closed: " + end_reason_);
  } else if (error_) {
    log::warn("connection " + peer_ + " refused: " + error_->text);
  }
  worker_.remove(id_);
}

// The protocol header, or what came instead.
asio::awaitable<bool> Connection::greet() {
  std::string first;
  for (;;) {
    const std::string_view input = co_await read();
    if (input.empty()) co_return false;
    first.append(input);
    const Greeting greeting = recognise_greeting(first);
    if (greeting == Greeting::incomplete) continue;
    if (greeting == Greeting::amqp_0_9_1) break;
    const char* what = greeting == Greeting::http         ? "HTTP on the AMQP port"
                       : greeting == Greeting::tls        ? "TLS on the plain AMQP port"
                       : greeting == Greeting::amqp_other ? "another version of AMQP"
                                                          : "no AMQP protocol header";
    log::warn("connection " + peer_ + " refused: " + what);
    if (greeting != Greeting::http && greeting != Greeting::tls) {
      output_.tail().append(wire::kProtocolHeader);
    }
    co_return false;
  }
  handshake_.start(output_.tail());
  try_write();
  // Whatever came behind the header.
  const std::string rest = first.substr(wire::kProtocolHeader.size());
  co_await handle_input(rest);
  co_return true;
}

asio::awaitable<void> Connection::open() {
  while (!handshake_.done() && phase_ == Phase::opening && !client_closed_ && !error_) {
    const std::string_view input = co_await read();
    if (input.empty()) {
      end_reason_ = "peer went away during the handshake";
      client_closed_ = false;
      phase_ = Phase::closing;
      co_return;
    }
    co_await handle_input(input);
  }
}

asio::awaitable<void> Connection::serve() {
  while (phase_ == Phase::running && !client_closed_ && !error_) {
    const std::string_view input = co_await read();
    if (input.empty()) co_return;
    co_await handle_input(input);
  }
}

asio::awaitable<std::string_view> Connection::read() {
  for (;;) {
    if (phase_ == Phase::running && held_back()) co_await wait_for_room();
    if (socket_gone_ || (error_ && phase_ != Phase::closing)) co_return std::string_view{};
    reading_ = true;
    auto [wait_error] = co_await socket_.async_wait(tcp::socket::wait_read, kAwait);
    reading_ = false;
    if (wait_error || socket_gone_ || (error_ && phase_ != Phase::closing)) {
      co_return std::string_view{};
    }
    if (phase_ == Phase::running && held_back()) continue;  // an alarm came while it waited
    boost::system::error_code error;
    const auto buffer = worker_.read_buffer();
    const std::size_t count = socket_.read_some(asio::buffer(buffer.data(), buffer.size()), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) continue;
    if (error || count == 0) co_return std::string_view{};
    worker_.refresh_clock();
    last_received_ = worker_.now();
    received_bytes_ += count;
    co_return std::string_view(buffer.data(), count);
  }
}

// Over a limit of its own, or a publisher while there is an alarm.
bool Connection::held_back() const {
  if (socket_gone_ || error_ || client_closed_) return false;
  return uncommitted_bytes_ > kMaxUncommittedBytes || output_.pending() > kMaxPendingOutputBytes ||
         (publisher_ && !worker_.alarm().empty());
}

asio::awaitable<void> Connection::wait_for_room() {
  while (held_back()) {
    waiting_for_room_ = true;
    worker_.schedule_tick(worker_.now() + kHangUpCheckInterval);
    wake_.expires_at(SteadyTime::max());
    co_await wake_.async_wait(kAwait);
    waiting_for_room_ = false;
  }
  // Its silence was ours: the heartbeat counts from here.
  last_received_ = std::max(last_received_, worker_.now());
}

void Connection::wake() {
  if (waiting_for_room_) wake_.cancel();
}

asio::awaitable<void> Connection::handle_input(std::string_view input) {
  std::optional<std::string> rest;
  for (;;) {
    const Step step = process(input);
    send_staged();
    if (step == Step::need_more) break;
    if (!rest) {
      // The worker's read buffer is others' while this waits.
      rest.emplace(input);
      input = *rest;
    }
    worker_.end_turn();
    if (step == Step::method) {
      co_await handle_method();
    } else if (step == Step::channel_failed) {
      auto failure = *std::exchange(channel_failure_, std::nullopt);
      co_await close_channel(method_channel_, std::move(failure));
    }
    if (phase_ == Phase::running && held_back()) co_await wait_for_room();
    worker_.refresh_clock();
    mark_dirty();
    if (client_closed_ || error_ || socket_gone_) break;
  }
  mark_dirty();
  worker_.end_turn();
}

Connection::Step Connection::process(std::string_view& input) {
  using Kind = wire::FrameDecoder::Kind;
  for (;;) {
    const auto event = decoder_.next(input);
    switch (event.kind) {
      case Kind::need_more:
        return Step::need_more;
      case Kind::error:
        throw wire::ConnectionError(event.unexpected_frame ? ConnectionErrorCode::unexpected_frame
                                                           : ConnectionErrorCode::frame_error,
                                    event.error_text);
      case Kind::heartbeat:
        continue;
      default:
        break;
    }
    const Step step = process_method(event);
    if (step != Step::need_more) return step;
    // A read holds thousands of small frames, each of which may ask for much. A message that has
    // begun may end: breaking off within it would leave it half in memory.
    if (held_back() && !input.empty() && !expects_content()) return Step::over_limit;
  }
}

bool Connection::expects_content() const {
  return recent_channel_ != nullptr && recent_channel_->expects_content();
}

// One frame of a channel, or a method on channel 0; need_more: it is done with.
Connection::Step Connection::process_method(const wire::FrameDecoder::Event& event) {
  using Kind = wire::FrameDecoder::Kind;
  method_channel_ = event.channel;
  if (event.channel == kChannelZero) {
    if (event.kind != Kind::method) {
      throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame, "content on channel 0");
    }
    method_payload_.assign(event.payload);
    return Step::method;
  }
  Channel* channel = find_channel(event.channel);
  try {
    if (event.kind == Kind::body) {
      if (channel == nullptr) throw_no_channel(event.channel);
      channel->on_body(event.payload);
      return Step::need_more;
    }
    if (event.kind == Kind::header) {
      if (channel == nullptr) throw_no_channel(event.channel);
      channel->on_header(event.payload);
      return Step::need_more;
    }
    const auto id = wire::peek_method_id(event.payload);
    if (!id)
      throw wire::ConnectionError(ConnectionErrorCode::frame_error, "method frame too short");
    if (channel != nullptr && channel->handle_at_once(*id, event.payload)) return Step::need_more;
  } catch (const wire::ChannelError& error) {
    channel_failure_ = error;
    return Step::channel_failed;
  }
  method_payload_.assign(event.payload);
  return Step::method;
}

Channel* Connection::find_channel(ChannelNumber number) {
  if (recent_channel_ != nullptr && recent_channel_->number() == number) return recent_channel_;
  const auto it = channels_.find(number);
  if (it == channels_.end()) return nullptr;
  return recent_channel_ = it->second.get();
}

Channel* Connection::find_channel(const ChannelRef& ref) {
  Channel* channel = find_channel(ref.number);
  return channel != nullptr && channel->ref() == ref && !channel->closing() ? channel : nullptr;
}

// --- ending ---

void Connection::close(ConnectionErrorCode code, const std::string& text) {
  if (error_ || client_closed_ || phase_ == Phase::closing || phase_ == Phase::closed) return;
  error_.emplace(code, text);
  wake();
  // The reader sees error_ and goes on to the end.
  boost::system::error_code ignored;
  if (reading_) socket_.cancel(ignored);
}

// Consumers and unacknowledged messages of all channels, then the exclusive queues.
asio::awaitable<void> Connection::release_everything() {
  send_staged();
  for (auto& [number, channel] : channels_) co_await channel->release();
  recent_channel_ = nullptr;
  channels_.clear();
  // What the socket never took and no client has to settle.
  while (!unwritten_.empty()) {
    Written& w = unwritten_.front();
    if (w.settle) {
      w.settle->kind = SettleKind::undelivered;
      staged(w.home).settles.push_back(*w.settle);
    }
    unwritten_.pop_front();
  }
  send_staged();
  for (std::size_t i = 0; i < worker_.worker_count(); ++i) {
    Worker& home = worker_.peer(WorkerIndex(static_cast<std::uint32_t>(i)));
    auto forget = [&home, id = id_] { home.home().forget_connection(id); };
    co_await run_on(home, std::move(forget));
  }
  worker_.end_turn();
  if (has_exclusive_queues_) {
    co_await worker_.control().call(worker_.control().connection_closed(id_));
  }
}

// Says goodbye and waits, for a bounded time, until it has been taken.
asio::awaitable<void> Connection::finish() {
  if (socket_gone_) co_return;
  start_deadline(kCloseTimeout);
  if (client_closed_) {
    wire::append_method(output_.tail(), kChannelZero, wire::connection::CloseOk{});
  } else if (error_) {
    wire::append_method(
        output_.tail(), kChannelZero,
        wire::connection::Close{static_cast<std::uint16_t>(error_->code), error_->text,
                                error_->method.class_id, error_->method.method_id});
  }
  try_write();
  while (output_.pending() > 0 && !socket_gone_) {
    auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, kAwait);
    if (error) break;
    try_write();
  }
  if (!error_ || client_closed_ || socket_gone_) co_return;
  // Until close-ok (or the peer's own close) everything else is discarded.
  decoder_ = wire::FrameDecoder(worker_.config().frame_max);
  for (;;) {
    std::string_view input = co_await read();
    if (input.empty()) co_return;
    for (;;) {
      const auto event = decoder_.next(input);
      if (event.kind == wire::FrameDecoder::Kind::need_more) break;
      if (event.kind == wire::FrameDecoder::Kind::error) {
        // A peer whose frames are broken may still begin its next read with a whole one.
        decoder_ = wire::FrameDecoder(worker_.config().frame_max);
        break;
      }
      if (event.kind != wire::FrameDecoder::Kind::method || event.channel != kChannelZero) continue;
      const auto id = wire::peek_method_id(event.payload);
      if (id == wire::connection::CloseOk::kId) co_return;
      if (id == wire::connection::Close::kId) {
        wire::append_method(output_.tail(), kChannelZero, wire::connection::CloseOk{});
        try_write();
        co_return;
      }
    }
  }
}

void Connection::drop_socket() {
  if (socket_gone_) return;
  socket_gone_ = true;
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  wake();
}

void Connection::start_deadline(std::chrono::milliseconds limit) {
  deadline_ = worker_.now() + limit;
  worker_.schedule_tick(deadline_);
}

ConnectionStats Connection::stats() const {
  ConnectionStats stats;
  stats.id = id_;
  stats.peer = peer_;
  stats.name = client().connection_name.empty() ? peer_ : client().connection_name;
  stats.user = client().user;
  stats.vhost = client().vhost;
  stats.state = phase_ == Phase::opening   ? "opening"
                : phase_ != Phase::running ? "closing"
                : held_back()              ? "blocked"
                                           : "running";
  stats.channels = channels_.size();
  stats.received_bytes = received_bytes_;
  stats.sent_bytes = output_.written_total();
  return stats;
}

}  // namespace stoat::broker
