#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/id_map.hpp"

#include "broker/handshake.hpp"
#include "broker/output_buffer.hpp"
#include "broker/traffic.hpp"
#include "broker/worker.hpp"
#include "wire/frame.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {

class Channel;

// One client's TCP connection: reads, splits into frames, hands them to channels; collects what
// channels and homes have for the client and writes it once per turn.
//
// Owner: Worker's table, kept alive by its coroutine. Thread: that worker's only.
// Invariants: publishes, settles and credit staged by a read leave for their homes at the end of
// that read, and before any method suspends; the peer is not read while it is over a limit.
// Does not: know queues or consumers (Channel), route (RoutingTable), decide logins (Handshake).
class Connection : public std::enable_shared_from_this<Connection>, private LoginDirectory {
 public:
  Connection(Worker& worker, ConnectionId id, asio::ip::tcp::socket socket);
  ~Connection() override;

  void start();

  // --- from the worker ---
  // What a home staged for this connection.
  void take(WorkerIndex home, ToConnection& batch);
  bool awaits_replies(const ReplyAddress& to);
  void take_reply(const ReplyAddress& to, const MessagePtr& message);
  // Encodes decided confirms, writes, sends staged batches.
  void flush();
  // Heartbeats and time limits; returns when it wants to be called again.
  SteadyTime tick(SteadyTime now);
  void on_alarm();
  // connection.close from our side; what is unacknowledged goes back.
  void close(wire::ConnectionErrorCode code, const std::string& text);
  void drop_socket();
  ConnectionStats stats() const;
  std::size_t channel_count() const { return channels_.size(); }

  // --- from its channels ---
  Worker& worker() { return worker_; }
  ConnectionId id() const { return id_; }
  const ClientInfo& client() const { return handshake_.client(); }
  std::span<const std::string> user_tags() const;  // as they are now
  std::uint32_t frame_max_bytes() const { return handshake_.tuning().frame_max_bytes; }
  VhostReplica& vhost() { return *vhost_; }
  OutputBuffer& output() { return output_; }
  // Batch for that home, sent at the end of the read.
  ToHome& staged(WorkerIndex home);
  void send_staged();
  void count_uncommitted(std::uint64_t bytes) { uncommitted_bytes_ += bytes; }
  // Of messages whose last byte has not come yet. False: over the limit.
  bool hold_content(std::uint64_t bytes);
  void release_content(std::uint64_t bytes);
  // The first publish makes this a publisher: alarms hold it back from then on.
  void note_publisher();
  void note_exclusive_queue() { has_exclusive_queues_ = true; }
  void mark_dirty();
  // The channel has decided confirms to encode at the end of the turn.
  void note_confirms(const ChannelRef& channel) {
    if (!confirming_.empty() && confirming_.back() == channel) return;
    confirming_.push_back(channel);
    mark_dirty();
  }
  ConsumerId new_consumer_id() { return last_consumer_ = last_consumer_.next(); }
  // A no_ack delivery that is settled once written up to here.
  void settle_when_written(std::uint64_t output_end, WorkerIndex home, Settle settle);
  // nullptr while the user may not use the vhost any more.
  const Permissions* permissions();

 private:
  enum class Step { need_more, method, channel_failed, over_limit };
  enum class Phase { opening, running, closing, closed };

  // LoginDirectory
  bool password_matches(std::string_view user, std::string_view password) const override;
  bool vhost_exists(std::string_view vhost) const override;
  bool may_use_vhost(std::string_view user, std::string_view vhost) const override;

  asio::awaitable<void> run();
  asio::awaitable<bool> greet();
  asio::awaitable<void> open();
  asio::awaitable<void> serve();
  // One read into the worker's buffer; empty when the peer is gone.
  asio::awaitable<std::string_view> read();
  asio::awaitable<void> wait_for_room();
  bool held_back() const;
  bool expects_content() const;
  bool hung_up() const;
  asio::awaitable<void> handle_input(std::string_view input);
  // Decodes until the input is used up or something has to be awaited.
  Step process(std::string_view& input);
  Step process_method(const wire::FrameDecoder::Event& event);
  asio::awaitable<void> handle_method();
  asio::awaitable<void> handle_connection_method(wire::MethodId id);
  asio::awaitable<void> open_channel(ChannelNumber number);
  asio::awaitable<void> close_channel(ChannelNumber number, wire::ChannelError error);
  asio::awaitable<void> release_everything();
  asio::awaitable<void> finish();
  void update_secret();
  void send_blocked();

  void try_write();
  void wait_writable();
  void note_written();
  void wake();
  void start_deadline(std::chrono::milliseconds limit);
  Channel* find_channel(ChannelNumber number);
  Channel* find_channel(const ChannelRef& ref);
  void give_back(const Delivery& delivery);

  Worker& worker_;
  const ConnectionId id_;
  asio::ip::tcp::socket socket_;
  std::string peer_;
  asio::steady_timer wake_;
  OutputBuffer output_;
  wire::FrameDecoder decoder_;
  Handshake handshake_;
  Phase phase_ = Phase::opening;
  VhostReplica* vhost_ = nullptr;

  IdMap<ChannelNumber, std::unique_ptr<Channel>> channels_;
  Channel* recent_channel_ = nullptr;
  ChannelIncarnation last_incarnation_;
  ConsumerId last_consumer_;

  // What process() stopped at.
  ChannelNumber method_channel_;
  std::string method_payload_;
  std::optional<wire::ChannelError> channel_failure_;

  // Why and how it ends.
  std::optional<wire::ConnectionError> error_;
  bool client_closed_ = false;
  std::string end_reason_;

  std::vector<ToHome> staged_;
  std::vector<ChannelRef> confirming_;
  std::uint64_t uncommitted_bytes_ = 0;
  std::uint64_t content_bytes_ = 0;  // of unfinished messages
  bool publisher_ = false;
  bool blocked_sent_ = false;
  bool has_exclusive_queues_ = false;
  bool dirty_ = false;
  bool awaiting_writable_ = false;
  bool waiting_for_room_ = false;
  bool reading_ = false;
  bool socket_gone_ = false;
  bool replies_dropped_ = false;

  // Output positions at which credit returns to homes and no_ack deliveries are settled.
  struct Written {
    std::uint64_t output_end = 0;
    WorkerIndex home;
    std::uint64_t bytes = 0;
    std::optional<Settle> settle;
  };
  std::deque<Written> unwritten_;

  SteadyTime last_received_;
  SteadyTime last_sent_;
  SteadyTime last_taken_;  // when the socket last took anything
  SteadyTime deadline_ = SteadyTime::max();
  std::uint64_t received_bytes_ = 0;

  std::shared_ptr<const Permissions> permissions_;
  std::uint64_t permissions_generation_ = 0;
};

// Frames are no larger than this before the login.
inline constexpr std::uint32_t kHandshakeFrameMaxBytes = 8192;
// A publisher is not read on while this many of its bytes are with homes and not yet safe.
inline constexpr std::uint64_t kMaxUncommittedBytes = 4u << 20;
// A peer that does not take its output is not read on past this much.
inline constexpr std::uint64_t kMaxPendingOutputBytes = 8u << 20;
// Unfinished messages of a connection may have as many bytes as this many of the largest allowed.
inline constexpr std::uint64_t kMaxUnfinishedMessages = 2;
// A connection that is not read does not notice by itself that its peer has gone.
inline constexpr std::chrono::milliseconds kHangUpCheckInterval{1000};
// no_ack deliveries that were written together are settled together, in runs of at most this.
inline constexpr std::uint64_t kMaxSettleRunBytes = 64 * 1024;
// How long a closing connection waits for the peer's close-ok, and for its output to leave.
inline constexpr std::chrono::milliseconds kCloseTimeout{3000};

}  // namespace stoat::broker
