#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/id_map.hpp"

#include "broker/confirm_tracker.hpp"
#include "broker/connection.hpp"
#include "broker/message.hpp"
#include "broker/traffic.hpp"
#include "broker/unacked_deliveries.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/exchange.hpp"
#include "wire/properties.hpp"
#include "wire/queue.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {

// An AMQP channel: publishes towards homes, deliveries towards the client, and the methods of
// classes channel, exchange, queue, basic, confirm and tx.
//
// Owner: Connection. Thread: the connection's worker.
// Invariants: publish, ack, nack and reject never suspend; every delivery tag given out is settled,
// held or inside the transaction; every publish tag is answered once, in order.
// Errors: functions throw wire::ChannelError (closes this channel) or wire::ConnectionError.
class Channel {
 public:
  Channel(Connection& connection, ChannelNumber number, ChannelIncarnation incarnation);

  ChannelNumber number() const { return ref_.number; }
  const ChannelRef& ref() const { return ref_; }
  // channel.close was sent: everything but the peer's close and close-ok is discarded.
  bool closing() const { return closing_; }
  void set_closing() { closing_ = true; }

  // --- frames that never suspend ---
  // false when the method has to be awaited through handle().
  bool handle_at_once(wire::MethodId id, std::string_view payload);
  void on_header(std::string_view payload);
  // `frame_input_bytes` more bytes of this message are at hand behind these.
  void on_body(std::string_view bytes);
  bool expects_content() const { return content_ != Content::none; }
  void drop_content();

  // --- methods that may suspend; the payload must outlive the call ---
  asio::awaitable<void> handle(wire::MethodId id, std::string_view payload);

  // --- from homes ---
  // false: the consumer is gone; the delivery is to go back.
  bool deliver(const Delivery& delivery);
  bool awaits_replies(const ReplyAddress& to) const {
    return reply_consumer_tag_.has_value() && to.secret == reply_secret_;
  }
  void deliver_reply(const ReplyAddress& to, const MessagePtr& message);
  void on_confirm(const Confirm& confirm);
  void on_cancelled(ConsumerId consumer);
  void on_lease_wanted(const LeaseWanted& wanted);
  void on_lease_returned(const LeaseReturned& returned);
  // Encodes the confirms that are decided.
  void flush_confirms();

  // Everything it holds goes back to its queues, consumers first.
  asio::awaitable<void> release();

 private:
  enum class Content { none, header, body };

  struct Consumer {
    std::string tag;
    QueueId queue;
    bool no_ack = false;
    bool limited = false;    // counts towards the channel-wide prefetch
    bool announced = false;  // consume-ok is out; before it deliveries wait in `early`
    std::vector<Delivery> early;
  };

  // channel.cpp
  asio::awaitable<void> handle_channel_method(wire::MethodId id, std::string_view payload);
  asio::awaitable<void> flow(bool active);
  template <class M>
  void reply(const M& method);

  // channel_publish.cpp
  void on_publish(std::string_view payload);
  void check_publish_target();
  [[noreturn]] void refuse_content(const std::string& why);
  std::string rewritten_properties(const wire::PropertiesView& properties);
  void on_message(MessagePtr message);
  std::span<const QueueId> route(const Message& message);
  void stage(const MessagePtr& message, std::span<const QueueId> queues);
  void return_message(const Message& message);
  bool publish_reply(const MessagePtr& message);
  void select_confirms(bool no_wait);

  // channel_settle.cpp
  void on_ack(const wire::basic::Ack& ack);
  void on_nack(DeliveryTag tag, bool multiple, bool requeue, wire::MethodId method);
  void settle(DeliveryTag tag, bool multiple, SettleKind kind, wire::MethodId method);
  void settle_entry(UnackedDeliveries::Entry& entry, SettleKind kind);
  void add_settle(ToHome& batch, const UnackedDeliveries::Entry& entry, SettleKind kind);
  void after_settles();
  void grant_leases();
  asio::awaitable<void> recover(bool requeue, wire::MethodId method);

  // channel_consume.cpp
  asio::awaitable<void> handle_basic_method(wire::MethodId id, std::string_view payload);
  asio::awaitable<void> qos(const wire::basic::Qos& method);
  asio::awaitable<void> consume(const wire::basic::Consume& method);
  void announce(ConsumerId id);
  void consume_replies(const wire::basic::Consume& method, std::string tag);
  asio::awaitable<void> cancel(const wire::basic::Cancel& method);
  asio::awaitable<void> get(const wire::basic::Get& method);
  std::string consumer_tag(const wire::basic::Consume& method);

  // channel_definitions.cpp
  asio::awaitable<void> handle_exchange_method(wire::MethodId id, std::string_view payload);
  asio::awaitable<void> declare_exchange(const wire::exchange::Declare& method);
  asio::awaitable<void> delete_exchange(const wire::exchange::Delete& method);
  asio::awaitable<void> bind_exchange(const wire::exchange::Bind& method);
  asio::awaitable<void> unbind_exchange(const wire::exchange::Unbind& method);
  // channel_queues.cpp
  asio::awaitable<void> handle_queue_method(wire::MethodId id, std::string_view payload);
  asio::awaitable<void> declare_queue(const wire::queue::Declare& method);
  asio::awaitable<void> declare_passively(const std::string& name, bool no_wait);
  asio::awaitable<void> bind_queue(const wire::queue::Bind& method);
  asio::awaitable<void> unbind_queue(const wire::queue::Unbind& method);
  asio::awaitable<void> purge(const wire::queue::Purge& method);
  asio::awaitable<void> delete_queue(const wire::queue::Delete& method);
  asio::awaitable<bool> reply_consumer_exists(std::string_view name);
  asio::awaitable<QueueCounts> counts_of(QueueId queue);

  // channel_access.cpp: who may do what
  std::string queue_name(std::string_view given, wire::MethodId method) const;
  // The queue of that name, reachable for this connection: 404, 405.
  const QueueDef& require_queue(const std::string& name, wire::MethodId method) const;
  const ExchangeDef& require_exchange(const std::string& name, wire::MethodId method) const;
  enum class Right { configure, write, read };
  void check_right(Right right, std::string_view kind, std::string_view name,
                   wire::MethodId method);
  void check_configure(std::string_view kind, std::string_view name, wire::MethodId method);
  void check_write(std::string_view kind, std::string_view name, wire::MethodId method);
  void check_read(std::string_view kind, std::string_view name, wire::MethodId method);
  void refuse_default_exchange(std::string_view name, wire::MethodId method) const;
  void check_name(std::string_view kind, std::string_view name, wire::MethodId method) const;

  // channel_transaction.cpp
  asio::awaitable<void> handle_transaction_method(wire::MethodId id);
  asio::awaitable<void> commit();
  void rollback();

  Connection& connection_;
  const ChannelRef ref_;
  bool closing_ = false;
  bool flow_active_ = true;
  std::string last_declared_queue_;

  // --- the publish that is arriving ---
  Content content_ = Content::none;
  std::string exchange_;
  std::string routing_key_;
  bool mandatory_ = false;
  bool persistent_ = false;
  std::string properties_;  // of the arriving message; as received unless a BCC was taken out
  std::uint64_t body_size_ = 0;
  MessageBuilder builder_;
  bool builder_started_ = false;
  std::uint64_t held_content_bytes_ = 0;  // of the unfinished message
  bool has_headers_ = false;
  std::vector<std::string> extra_keys_;  // CC and BCC
  std::vector<std::string_view> extra_key_views_;

  // What was found out about exchange_ last time; good while the generations stand still.
  struct Target {
    std::string exchange;
    std::uint64_t routes_generation = 0;
    std::uint64_t rights_generation = 0;
    const routing::Exchange* handle = nullptr;
    bool valid = false;
    // The last routing key's queues; of use where headers do not matter.
    std::string routing_key;
    std::vector<QueueId> queues;
    bool queues_valid = false;
    bool by_headers = false;  // a route may depend on headers
  } target_;

  std::optional<ConfirmTracker> confirms_;
  std::vector<QueueId> by_home_;

  // --- deliveries ---
  UnackedDeliveries unacked_;
  IdMap<ConsumerId, Consumer> consumers_;
  std::uint16_t prefetch_ = 0;          // for consumers to come
  std::uint16_t channel_prefetch_ = 0;  // shared by all of the channel; 0: none
  std::uint32_t limited_unacked_ = 0;   // held by the channel-wide prefetch
  std::uint32_t leased_ = 0;            // given to homes and not used yet
  std::vector<LeaseWanted> lease_queue_;

  // --- direct reply-to ---
  std::optional<std::string> reply_consumer_tag_;
  std::uint64_t reply_secret_ = 0;

  // --- transaction ---
  struct TxPublished {
    MessagePtr message;
    std::vector<QueueId> queues;
    bool mandatory = false;
  };
  struct Transaction {
    std::vector<TxPublished> publishes;
    std::vector<std::pair<UnackedDeliveries::Entry, SettleKind>> settles;
    std::uint64_t bytes = 0;
  };
  std::optional<Transaction> transaction_;
};

// 405: the exclusive queue of another connection.
[[noreturn]] void throw_locked(const std::string& queue, const std::string& vhost,
                               wire::MethodId method);

// What a transaction may hold in memory before its commit.
inline constexpr std::uint64_t kMaxTransactionBytes = 256u << 20;
inline constexpr std::uint64_t kTransactionEntryBytes = 256;
// The store shares larger messages between queues.
inline constexpr std::uint64_t kCopiedBytes = 4096;
inline constexpr std::size_t kMaxConsumersPerChannel = 65'535;

}  // namespace stoat::broker
