// Deliveries to the client and what it says of them: ack, nack, reject, recover; the channel-wide
// prefetch.

#include <algorithm>

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "wire/codec.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
namespace basic = wire::basic;

}  // namespace

bool Channel::deliver(const Delivery& delivery) {
  const auto it = consumers_.find(delivery.consumer);
  if (it == consumers_.end()) return false;
  Consumer& consumer = it->second;
  if (!consumer.announced) {
    consumer.early.push_back(delivery);
    return true;
  }
  const Message& message = *delivery.message;
  const DeliveryTag tag = unacked_.next_tag();
  OutputBuffer& output = connection_.output();
  std::string& out = output.tail();
  wire::append_method(out, ref_.number,
                      basic::Deliver{consumer.tag, tag.value, delivery.redelivered,
                                     message.exchange(), message.routing_key()});
  wire::append_content_header(out, ref_.number, message.body().size(), message.properties());
  output.append_body(ref_.number, delivery.message, connection_.frame_max_bytes());
  const std::uint64_t end = output.appended_total();
  if (delivery.no_ack) {
    const Sequence at = delivery.position.sequence;
    connection_.settle_when_written(
        end, connection_.worker().home_of(delivery.queue),
        {delivery.queue, delivery.position.stream, SettleKind::sent, at, at});
    return true;
  }
  unacked_.add({tag, delivery.queue, delivery.position.sequence, delivery.consumer, end,
                delivery.position.stream, consumer.limited});
  if (consumer.limited) {
    ++limited_unacked_;
    if (leased_ > 0) --leased_;
  }
  return true;
}

void Channel::deliver_reply(const ReplyAddress& to, const MessagePtr& message) {
  if (!awaits_replies(to)) return;
  const DeliveryTag tag = unacked_.next_tag();
  std::string& out = connection_.output().tail();
  wire::append_method(out, ref_.number,
                      basic::Deliver{*reply_consumer_tag_, tag.value, false, message->exchange(),
                                     message->routing_key()});
  wire::append_content_header(out, ref_.number, message->body().size(), message->properties());
  connection_.output().append_body(ref_.number, message, connection_.frame_max_bytes());
}

void Channel::on_cancelled(ConsumerId id) {
  const auto it = consumers_.find(id);
  if (it == consumers_.end()) return;
  if (connection_.client().cancel_notify) reply(basic::Cancel{it->second.tag, true});
  consumers_.erase(it);
}

// --- ack, nack, reject ---

void Channel::on_ack(const basic::Ack& ack) {
  settle(DeliveryTag(ack.delivery_tag), ack.multiple, SettleKind::ack, basic::Ack::kId);
}

void Channel::on_nack(DeliveryTag tag, bool multiple, bool requeue, wire::MethodId method) {
  settle(tag, multiple, requeue ? SettleKind::requeue : SettleKind::reject, method);
}

void Channel::settle(DeliveryTag tag, bool multiple, SettleKind kind, wire::MethodId method) {
  const auto unknown = [&] {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             "unknown delivery tag " + std::to_string(tag.value), method);
  };
  const auto one = [&](UnackedDeliveries::Entry& entry) {
    if (!transaction_) return settle_entry(entry, kind);
    transaction_->settles.emplace_back(entry, kind);
    unacked_.enlist(entry);
  };
  if (!multiple) {
    UnackedDeliveries::Entry* entry = unacked_.find(tag);
    if (entry == nullptr) unknown();
    one(*entry);
  } else {
    // Tag 0 means all there are, also when there are none.
    if (tag.value != 0 && unacked_.find(tag) == nullptr) unknown();
    unacked_.for_each_held(tag, one);
  }
  after_settles();
}

void Channel::settle_entry(UnackedDeliveries::Entry& entry, SettleKind kind) {
  add_settle(connection_.staged(connection_.worker().home_of(entry.queue)), entry, kind);
  if (entry.limited && limited_unacked_ > 0) --limited_unacked_;
  unacked_.settle(entry);
}

// Neighbours of one queue travel as one range.
void Channel::add_settle(ToHome& batch, const UnackedDeliveries::Entry& entry, SettleKind kind) {
  if (!batch.settles.empty()) {
    Settle& last = batch.settles.back();
    if (last.queue == entry.queue && last.stream == entry.stream && last.kind == kind &&
        last.last.next() == entry.sequence) {
      last.last = entry.sequence;
      return;
    }
  }
  batch.settles.push_back({entry.queue, entry.stream, kind, entry.sequence, entry.sequence});
}

void Channel::after_settles() {
  unacked_.compact();
  if (channel_prefetch_ > 0) grant_leases();
}

asio::awaitable<void> Channel::recover(bool requeue, wire::MethodId method) {
  // requeue=false asks for the same consumers again.
  const SettleKind kind = requeue ? SettleKind::requeue : SettleKind::redeliver;
  unacked_.for_each_held(DeliveryTag(0),
                         [&](UnackedDeliveries::Entry& entry) { settle_entry(entry, kind); });
  after_settles();
  connection_.send_staged();
  if (method == basic::Recover::kId) reply(basic::RecoverOk{});
  co_return;
}

// --- the channel-wide prefetch, lent to homes on demand ---

void Channel::on_lease_wanted(const LeaseWanted& wanted) {
  lease_queue_.push_back(wanted);
  grant_leases();
}

void Channel::on_lease_returned(const LeaseReturned& returned) {
  leased_ -= std::min(leased_, returned.count);
  grant_leases();
}

void Channel::grant_leases() {
  while (!lease_queue_.empty()) {
    const std::uint32_t out = limited_unacked_ + leased_;
    if (channel_prefetch_ > 0 && out >= channel_prefetch_) return;
    const LeaseWanted wanted = lease_queue_.front();
    lease_queue_.erase(lease_queue_.begin());
    if (!consumers_.contains(wanted.consumer)) continue;
    const std::uint32_t room = channel_prefetch_ == 0 ? 1 : channel_prefetch_ - out;
    // Shared among those who wait, so that one busy queue does not take all.
    const auto share = static_cast<std::uint32_t>(room / (lease_queue_.size() + 1));
    const std::uint32_t count = std::max<std::uint32_t>(1, share);
    leased_ += count;
    connection_.staged(connection_.worker().home_of(wanted.queue))
        .leases.push_back({wanted.queue, wanted.consumer, count});
  }
}

}  // namespace stoat::broker
