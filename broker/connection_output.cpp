// What goes out of a connection: staged batches to homes, deliveries and confirms to the client,
// heartbeats.

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/connection.hpp"
#include "broker/log.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"

namespace stoat::broker {

namespace {

constexpr int kMaxRangesPerWrite = 64;

}  // namespace

// --- towards homes ---

ToHome& Connection::staged(WorkerIndex home) {
  mark_dirty();
  return staged_[home.value];
}

void Connection::send_staged() {
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    if (staged_[i].empty()) continue;
    worker_.send_to_home(WorkerIndex(static_cast<std::uint32_t>(i)), id_, staged_[i]);
  }
}

bool Connection::hold_content(std::uint64_t bytes) {
  content_bytes_ += bytes;
  return content_bytes_ <= kMaxUnfinishedMessages * worker_.config().max_message_bytes;
}

void Connection::release_content(std::uint64_t bytes) {
  STOAT_ASSERT(bytes <= content_bytes_, bytes, content_bytes_);
  content_bytes_ -= bytes;
}

void Connection::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  worker_.mark_dirty(shared_from_this());
}

// --- from homes ---

void Connection::take(WorkerIndex home, ToConnection& batch) {
  STOAT_ASSERT(batch.taken_bytes <= uncommitted_bytes_, batch.taken_bytes, uncommitted_bytes_);
  uncommitted_bytes_ -= batch.taken_bytes;
  if (batch.taken_bytes > 0 && !held_back()) wake();
  const std::uint64_t before = output_.appended_total();
  for (const Delivery& delivery : batch.deliveries) {
    Channel* channel = phase_ == Phase::running ? find_channel(delivery.channel) : nullptr;
    if (channel == nullptr || socket_gone_ || !channel->deliver(delivery)) give_back(delivery);
  }
  for (const ConsumerCancelled& cancelled : batch.cancelled) {
    if (Channel* channel = find_channel(cancelled.channel))
      channel->on_cancelled(cancelled.consumer);
  }
  for (const Confirm& confirm : batch.confirms) {
    if (Channel* channel = find_channel(confirm.channel)) channel->on_confirm(confirm);
  }
  for (const LeaseWanted& wanted : batch.wanted) {
    if (Channel* channel = find_channel(wanted.channel)) channel->on_lease_wanted(wanted);
  }
  for (const LeaseReturned& returned : batch.returned) {
    if (Channel* channel = find_channel(returned.channel)) channel->on_lease_returned(returned);
  }
  const std::uint64_t after = output_.appended_total();
  std::uint64_t staged_bytes = 0;
  for (const Delivery& delivery : batch.deliveries) {
    staged_bytes += delivery.message->stored().size();
  }
  if (staged_bytes > 0) {
    if (after == before) {
      staged(home).written_bytes += staged_bytes;  // nothing of it goes out: credit at once
    } else {
      unwritten_.push_back({after, home, staged_bytes, std::nullopt});
    }
  }
  mark_dirty();
}

void Connection::give_back(const Delivery& delivery) {
  staged(worker_.home_of(delivery.queue))
      .settles.push_back({delivery.queue, delivery.position.stream, SettleKind::undelivered,
                          delivery.position.sequence, delivery.position.sequence});
}

bool Connection::awaits_replies(const ReplyAddress& to) {
  const Channel* channel = find_channel(to.channel);
  return channel != nullptr && channel->awaits_replies(to);
}

// Direct replies are kept nowhere: what a requester does not take is dropped.
void Connection::take_reply(const ReplyAddress& to, const MessagePtr& message) {
  if (output_.pending() > kMaxPendingOutputBytes) {
    if (!std::exchange(replies_dropped_, true)) {
      log::warn("connection " + peer_ + " does not read: direct replies to it are dropped");
    }
    return;
  }
  if (Channel* channel = find_channel(to.channel)) channel->deliver_reply(to, message);
  mark_dirty();
}

void Connection::settle_when_written(std::uint64_t output_end, WorkerIndex home, Settle settle) {
  if (!unwritten_.empty()) {
    // Neighbours go as one range.
    Written& last = unwritten_.back();
    if (last.settle && last.settle->queue == settle.queue && last.settle->stream == settle.stream &&
        last.settle->last.next() == settle.first && last.home == home &&
        output_end - last.output_end < kMaxSettleRunBytes) {
      last.settle->last = settle.last;
      last.output_end = output_end;
      return;
    }
  }
  unwritten_.push_back({output_end, home, 0, settle});
}

// --- the socket ---

void Connection::flush() {
  dirty_ = false;
  for (const ChannelRef& ref : confirming_) {
    if (Channel* channel = find_channel(ref)) channel->flush_confirms();
  }
  confirming_.clear();
  try_write();
  send_staged();
}

void Connection::try_write() {
  if (socket_gone_ || awaiting_writable_) return;
  while (output_.pending() > 0) {
    std::array<iovec, kMaxRangesPerWrite> ranges;
    msghdr message{};
    message.msg_iov = ranges.data();
    message.msg_iovlen =
        static_cast<std::size_t>(output_.gather(ranges.data(), kMaxRangesPerWrite));
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (phase_ == Phase::running || phase_ == Phase::opening) wait_writable();
        break;
      }
      drop_socket();  // the reader sees it and ends
      return;
    }
    output_.consume(static_cast<std::size_t>(count));
    last_sent_ = last_taken_ = worker_.now();
  }
  note_written();
}

void Connection::wait_writable() {
  awaiting_writable_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->awaiting_writable_ = false;
                       if (error) return;
                       self->worker_.refresh_clock();
                       self->mark_dirty();
                       self->worker_.end_turn();
                     });
}

// What the kernel has is credit for the homes, and settles what needs no ack.
void Connection::note_written() {
  const std::uint64_t written = output_.written_total();
  while (!unwritten_.empty() && unwritten_.front().output_end <= written) {
    Written& done = unwritten_.front();
    ToHome& batch = staged_[done.home.value];
    batch.written_bytes += done.bytes;
    if (done.settle) batch.settles.push_back(*done.settle);
    unwritten_.pop_front();
  }
  if (waiting_for_room_ && !held_back()) wake();
}

// --- time ---

SteadyTime Connection::tick(SteadyTime now) {
  if (phase_ == Phase::closed || socket_gone_) return SteadyTime::max();
  if (now >= deadline_) {
    if (phase_ == Phase::opening) end_reason_ = "handshake took too long";
    if (vhost_ == nullptr) log::warn("connection " + peer_ + " refused: handshake took too long");
    drop_socket();
    return SteadyTime::max();
  }
  if (phase_ != Phase::running) return deadline_;
  if (waiting_for_room_ && hung_up()) {
    end_reason_ = "peer went away";
    drop_socket();
    return SteadyTime::max();
  }
  const SteadyTime look_again = waiting_for_room_ ? now + kHangUpCheckInterval : deadline_;
  if (handshake_.tuning().heartbeat_s == 0) return look_again;
  const std::chrono::milliseconds interval = std::chrono::seconds(handshake_.tuning().heartbeat_s);
  if (reading_ && now - last_received_ >= 2 * interval) {
    end_reason_ = "missed heartbeats from the client, timeout: " +
                  std::to_string(handshake_.tuning().heartbeat_s) + "s";
    drop_socket();
    return SteadyTime::max();
  }
  const bool takes_nothing = !reading_ && output_.pending() > kMaxPendingOutputBytes;
  if (takes_nothing && now - last_taken_ >= 2 * interval) {
    end_reason_ =
        "the client takes no output, timeout: " + std::to_string(handshake_.tuning().heartbeat_s) +
        "s";
    drop_socket();
    return SteadyTime::max();
  }
  if (now - last_sent_ >= interval / 2) {
    // Behind output that does not move a heartbeat would only add to the pile.
    if (output_.pending() == 0) output_.tail().append(wire::kHeartbeatFrame);
    last_sent_ = now;
    mark_dirty();
  }
  // While we do not read, the peer's silence is our doing; that it takes nothing is its own.
  const SteadyTime silent_at = reading_        ? last_received_ + 2 * interval
                               : takes_nothing ? last_taken_ + 2 * interval
                                               : now + 2 * interval;
  return std::min({deadline_, look_again, last_sent_ + interval / 2, silent_at});
}

// What it sent before it went is not read any more: it would have to be kept somewhere, and nobody
// waits for an answer.
bool Connection::hung_up() const {
  pollfd watched{const_cast<asio::ip::tcp::socket&>(socket_).native_handle(), POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) > 0;
}

}  // namespace stoat::broker
