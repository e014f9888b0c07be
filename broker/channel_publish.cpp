// The way of a publish through its channel: basic.publish, content header, body, route, stage.

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "broker/decode.hpp"
#include "broker/publish_checks.hpp"
#include "broker/reply_address.hpp"
#include "wire/codec.hpp"
#include "wire/confirm.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
using wire::ConnectionErrorCode;
using BasicPublish = wire::basic::Publish;

// A key in a table's bytes is its length, then its characters: a quick look that spares most
// messages the parsing.
bool may_have_extra_keys(std::string_view raw_headers) {
  using namespace std::string_view_literals;
  return raw_headers.find("\2CC"sv) != std::string_view::npos ||
         raw_headers.find("\3BCC"sv) != std::string_view::npos;
}

// What a publish in a transaction costs until its commit is through: the message, and for each
// queue an entry and, of a small message, a copy in what is written.
std::uint64_t transaction_cost(const Message& message, std::size_t queues) {
  const std::uint64_t size = message.stored().size();
  return size + queues * (kTransactionEntryBytes + std::min<std::uint64_t>(size, kCopiedBytes));
}

}  // namespace

void Channel::on_publish(std::string_view payload) {
  const auto publish = decode_or_throw<BasicPublish>(payload);
  if (publish.immediate) throw_not_implemented("immediate=true", BasicPublish::kId);
  exchange_.assign(publish.exchange.text);
  routing_key_.assign(publish.routing_key.text);
  mandatory_ = publish.mandatory;
  check_publish_target();
  content_ = Content::header;
  connection_.note_publisher();
}

// Existence and rights of the exchange, remembered while nothing changes.
void Channel::check_publish_target() {
  VhostReplica& vhost = connection_.vhost();
  const std::uint64_t rights = connection_.worker().replica().rights_generation();
  if (target_.valid && target_.exchange == exchange_ &&
      target_.routes_generation == vhost.routes.generation() &&
      target_.rights_generation == rights) {
    return;
  }
  target_.valid = false;
  target_.queues_valid = false;
  const wire::MethodId method = BasicPublish::kId;
  if (!exchange_.empty()) {
    const ExchangeDef& exchange = require_exchange(exchange_, method);
    check_write("exchange", exchange_, method);
    if (exchange.internal) {
      throw wire::ChannelError(
          ChannelErrorCode::access_refused,
          "cannot publish to internal exchange '" + exchange_ + "' in vhost '" + vhost.name + "'",
          method);
    }
  } else {
    check_write("exchange", exchange_, method);
  }
  target_.exchange = exchange_;
  target_.routes_generation = vhost.routes.generation();
  target_.rights_generation = rights;
  target_.handle = vhost.routes.find(exchange_);
  STOAT_ASSERT(target_.handle != nullptr, exchange_);
  target_.valid = true;
}

void Channel::on_header(std::string_view payload) {
  if (closing_) return;
  if (content_ != Content::header) {
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame,
                                "content header where none was expected");
  }
  const auto header = wire::ContentHeader::decode(payload);
  if (!header) {
    throw wire::ConnectionError(ConnectionErrorCode::frame_error, "content header too short");
  }
  if (header->class_id != wire::basic::kClass) {
    throw wire::ConnectionError(
        ConnectionErrorCode::unexpected_frame,
        "content header of class " + std::to_string(header->class_id) + ", expected 60");
  }
  const wire::PropertiesView properties(header->properties);
  if (!properties.ok()) {
    throw wire::ConnectionError(ConnectionErrorCode::syntax_error, "malformed message properties",
                                BasicPublish::kId);
  }
  const std::uint64_t limit = connection_.worker().config().max_message_bytes;
  if (header->body_size > limit) {
    refuse_content("message size " + std::to_string(header->body_size) +
                   " is larger than configured max size " + std::to_string(limit));
  }
  const auto tags = properties.user_id() ? connection_.user_tags() : std::span<const std::string>();
  if (const std::string mistake = check_properties(properties, connection_.client().user, tags);
      !mistake.empty()) {
    refuse_content(mistake);
  }
  persistent_ = properties.persistent();
  has_headers_ = properties.has_headers();
  extra_keys_.clear();
  const bool extra = has_headers_ && may_have_extra_keys(properties.raw_headers());
  const bool reply = properties.reply_to() == kReplyQueueName;
  if (extra || reply) {
    properties_ = rewritten_properties(properties);
  } else {
    properties_.assign(header->properties);
  }
  body_size_ = header->body_size;
  content_ = Content::body;
  builder_started_ = false;
  if (body_size_ == 0) on_body({});
}

void Channel::refuse_content(const std::string& why) {
  drop_content();
  throw wire::ChannelError(ChannelErrorCode::precondition_failed, why, BasicPublish::kId);
}

// Reads CC and BCC, takes BCC out, and names this channel where the message asks for direct
// replies.
std::string Channel::rewritten_properties(const wire::PropertiesView& view) {
  wire::Properties properties = view.parse();
  bool changed = false;
  if (properties.headers) {
    if (const std::string mistake = read_extra_keys(*properties.headers, extra_keys_);
        !mistake.empty()) {
      refuse_content(mistake);
    }
    if (properties.headers->find(kBccHeader) != nullptr) {
      properties.headers->erase(kBccHeader);
      changed = true;
    }
  }
  if (properties.reply_to == kReplyQueueName) {
    if (!reply_consumer_tag_) refuse_content("fast reply consumer does not exist");
    properties.reply_to =
        reply_queue_name({connection_.worker().index(), connection_.id(), ref_, reply_secret_});
    changed = true;
  }
  return changed ? properties.encode() : std::string(view.raw());
}

void Channel::on_body(std::string_view bytes) {
  if (closing_) return;
  if (content_ != Content::body) {
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame,
                                "content body where none was expected");
  }
  const std::uint64_t left = builder_started_ ? builder_.body_left() : body_size_;
  if (bytes.size() > left) {
    throw wire::ConnectionError(ConnectionErrorCode::unexpected_frame,
                                "content body larger than its header announced");
  }
  if (!builder_started_) {
    builder_.start(exchange_, routing_key_, properties_, persistent_,
                   connection_.worker().wall_now(), body_size_, bytes.size());
    builder_started_ = true;
  }
  builder_.append(bytes);
  if (builder_.body_left() > 0) {
    held_content_bytes_ += bytes.size();
    if (connection_.hold_content(bytes.size())) return;
    drop_content();
    throw wire::ChannelError(ChannelErrorCode::content_too_large,
                             "too many bytes of unfinished messages on this connection",
                             BasicPublish::kId);
  }
  if (held_content_bytes_ > 0) {
    connection_.release_content(std::exchange(held_content_bytes_, 0));
  }
  content_ = Content::none;
  builder_started_ = false;
  on_message(builder_.finish());
}

void Channel::on_message(MessagePtr message) {
  if (exchange_.empty() && is_reply_queue_name(routing_key_)) {
    const bool taken = publish_reply(message);
    if (!taken && mandatory_) return_message(*message);
    if (confirms_) {
      confirms_->add(0);
      connection_.note_confirms(ref_);
    }
    return;
  }
  const std::span<const QueueId> queues = route(*message);
  if (transaction_) {
    transaction_->bytes += transaction_cost(*message, queues.size());
    if (transaction_->bytes > kMaxTransactionBytes) {
      throw wire::ChannelError(
          ChannelErrorCode::precondition_failed,
          "transaction is larger than " + std::to_string(kMaxTransactionBytes) + " bytes",
          BasicPublish::kId);
    }
    transaction_->publishes.push_back(
        {std::move(message), {queues.begin(), queues.end()}, mandatory_});
    return;
  }
  if (queues.empty() && mandatory_) return_message(*message);
  stage(message, queues);
}

std::span<const QueueId> Channel::route(const Message& message) {
  VhostReplica& vhost = connection_.vhost();
  // Definitions may have changed between the method and its last body byte.
  if (target_.routes_generation != vhost.routes.generation()) {
    target_.handle = vhost.routes.find(exchange_);
    target_.routes_generation = vhost.routes.generation();
    target_.queues_valid = false;
    if (target_.handle == nullptr) {
      target_.valid = false;
      require_exchange(exchange_, BasicPublish::kId);
    }
  }
  const bool cacheable = !has_headers_ && extra_keys_.empty();
  if (cacheable && target_.queues_valid && target_.routing_key == routing_key_) {
    return target_.queues;
  }
  extra_key_views_.assign(extra_keys_.begin(), extra_keys_.end());
  const wire::PropertiesView properties(has_headers_ ? wire::PropertiesView(message.properties())
                                                     : wire::PropertiesView());
  const routing::Routable routable{routing_key_, &properties};
  const auto queues = vhost.routes.route(*target_.handle, routable, extra_key_views_,
                                         connection_.worker().route_scratch());
  if (!cacheable) return queues;
  target_.routing_key = routing_key_;
  target_.queues.assign(queues.begin(), queues.end());
  target_.queues_valid = true;
  return target_.queues;
}

// One Publish per queue; those of one home stand together, as its confirms count them.
void Channel::stage(const MessagePtr& message, std::span<const QueueId> queues) {
  Worker& worker = connection_.worker();
  const PublishTag tag = confirms_ ? confirms_->next_tag() : PublishTag();
  std::uint8_t homes = 0;
  const auto put = [&](QueueId queue) {
    connection_.staged(worker.home_of(queue)).publishes.push_back({queue, message, ref_, tag});
  };
  if (queues.size() == 1) {
    put(queues[0]);
    homes = 1;
  } else if (worker.worker_count() == 1) {
    for (QueueId queue : queues) put(queue);
    homes = queues.empty() ? 0 : 1;
  } else {
    by_home_.assign(queues.begin(), queues.end());
    std::sort(by_home_.begin(), by_home_.end(),
              [&](QueueId a, QueueId b) { return worker.home_of(a) < worker.home_of(b); });
    for (std::size_t i = 0; i < by_home_.size(); ++i) {
      put(by_home_[i]);
      if (i == 0 || worker.home_of(by_home_[i]) != worker.home_of(by_home_[i - 1])) ++homes;
    }
  }
  connection_.count_uncommitted(message->stored().size() * queues.size());
  if (!confirms_) return;
  confirms_->add(homes);
  if (homes == 0) connection_.note_confirms(ref_);
}

void Channel::return_message(const Message& message) {
  reply(wire::basic::Return{wire::kNoRoute, "NO_ROUTE", message.exchange(), message.routing_key()});
  std::string& out = connection_.output().tail();
  wire::append_content_header(out, ref_.number, message.body().size(), message.properties());
  connection_.output().append_body(ref_.number, MessagePtr(&message),
                                   connection_.frame_max_bytes());
}

bool Channel::publish_reply(const MessagePtr& message) {
  const auto address = parse_reply_queue_name(routing_key_);
  if (!address) return false;
  connection_.worker().send_reply(*address, message);
  return true;
}

void Channel::on_confirm(const Confirm& confirm) {
  STOAT_ASSERT(confirms_.has_value(), confirm.first);
  confirms_->decide(confirm.first, confirm.last, confirm.nack);
  connection_.note_confirms(ref_);
}

void Channel::flush_confirms() {
  if (!confirms_) return;
  std::string& out = connection_.output().tail();
  confirms_->flush(
      [&](PublishTag last, bool multiple) {
        wire::append_method(out, ref_.number, wire::basic::Ack{last.value, multiple});
      },
      [&](PublishTag tag) {
        wire::append_method(out, ref_.number, wire::basic::Nack{tag.value, false, false});
      });
}

void Channel::select_confirms(bool no_wait) {
  if (transaction_) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             "cannot switch from tx to confirm mode", wire::confirm::Select::kId);
  }
  if (!confirms_) confirms_.emplace();
  if (!no_wait) reply(wire::confirm::SelectOk{});
}

}  // namespace stoat::broker
