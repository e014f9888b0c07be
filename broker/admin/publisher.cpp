#include "broker/admin/publisher.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <utility>

#include "base/assert.hpp"
#include "broker/admin/refusal.hpp"
#include "broker/admin/rights.hpp"
#include "broker/queue_arguments.hpp"
#include "broker/reply_address.hpp"

namespace stoat::broker::admin {

namespace {

// Tags are counted over all that this publishes, as if on one channel.
constexpr ChannelRef kChannel{ChannelNumber(1), ChannelIncarnation(1)};

const routing::Exchange& check_target(const Publisher::Request& request, const VhostReplica& vhost,
                                      const Permissions* permissions) {
  const std::string exchange(request.message->exchange());
  const ExchangeDef* known = vhost.find_exchange(exchange);
  if (known == nullptr && !exchange.empty()) {
    throw Refusal(RefusalCode::not_found, "no " + exchange_in_vhost(exchange, vhost.name));
  }
  const std::string asked(permission_name(exchange));
  if (permissions == nullptr || !permissions->may_write(asked)) {
    throw Refusal(RefusalCode::access_refused, "access to exchange '" + asked + "' in vhost '" +
                                                   vhost.name + "' refused for user '" +
                                                   request.user + "'");
  }
  if (known != nullptr && known->internal) {
    throw Refusal(RefusalCode::access_refused, "cannot publish to internal exchange '" + exchange +
                                                   "' in vhost '" + vhost.name + "'");
  }
  const routing::Exchange* handle = vhost.routes.find(exchange);
  STOAT_ASSERT(handle != nullptr, exchange);
  return *handle;
}

}  // namespace

void Publisher::start() {
  worker_.post([this] {
    worker_.set_internal_sink([this](const ToConnection& answers) { on_answers(answers); });
  });
}

void Publisher::stop() {
  worker_.post([this] {
    stopped_ = true;
    for (const auto& [tag, pending] : pending_) pending->decided.cancel();
    pending_.clear();
  });
}

asio::awaitable<bool> Publisher::publish(Request request) {
  worker_.refresh_clock();
  if (stopped_) throw Refusal(RefusalCode::unavailable, "the broker is stopping");
  on_publish_();
  std::vector<QueueId> queues = route(request);
  if (!worker_.alarm().empty()) {
    throw Refusal(RefusalCode::unavailable, "publishers are held back: " + worker_.alarm());
  }
  const Message& message = *request.message;
  if (message.exchange().empty() && is_reply_queue_name(message.routing_key())) {
    const auto address = parse_reply_queue_name(message.routing_key());
    if (address) worker_.send_reply(*address, request.message);
    co_return address.has_value();
  }
  if (queues.empty()) co_return false;
  const std::shared_ptr<Pending> pending = send(request.message, std::move(queues));
  // The answer may have come already.
  if (pending->homes_left > 0) {
    co_await pending->decided.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (pending->homes_left > 0) {
    throw Refusal(RefusalCode::unavailable, "the broker is stopping");
  }
  if (pending->rejected) {
    throw Refusal(RefusalCode::precondition_failed, "a queue rejected the message");
  }
  co_return true;
}

std::vector<QueueId> Publisher::route(const Request& request) {
  Replica& replica = worker_.replica();
  const VhostReplica* vhost = replica.find_vhost(request.vhost);
  if (vhost == nullptr) {
    throw Refusal(RefusalCode::not_found, "no vhost '" + request.vhost + "'");
  }
  const UserDef* user = replica.find_user(request.user);
  if (user == nullptr || !is_admin_user(*user)) {
    throw Refusal(RefusalCode::access_refused,
                  "user '" + request.user + "' may not use the admin door");
  }
  const auto permissions = replica.permissions(request.user, request.vhost);
  const routing::Exchange& exchange = check_target(request, *vhost, permissions.get());
  const wire::PropertiesView properties(request.message->properties());
  const std::vector<std::string_view> extra_keys(request.extra_keys.begin(),
                                                 request.extra_keys.end());
  const auto queues = vhost->routes.route(exchange, {request.message->routing_key(), &properties},
                                          extra_keys, worker_.route_scratch());
  return {queues.begin(), queues.end()};
}

std::shared_ptr<Publisher::Pending> Publisher::send(const MessagePtr& message,
                                                    std::vector<QueueId> queues) {
  auto pending = std::make_shared<Pending>(worker_.io());
  last_tag_ = last_tag_.next();
  pending_.emplace(last_tag_, pending);
  std::sort(queues.begin(), queues.end(),
            [&](QueueId a, QueueId b) { return worker_.home_of(a) < worker_.home_of(b); });
  std::vector<std::pair<WorkerIndex, ToHome>> batches;
  for (QueueId queue : queues) {
    const WorkerIndex home = worker_.home_of(queue);
    if (batches.empty() || batches.back().first != home) batches.emplace_back(home, ToHome{});
    batches.back().second.publishes.push_back({queue, message, kChannel, last_tag_});
  }
  pending->homes_left = batches.size();
  for (auto& [home, batch] : batches) worker_.send_to_home(home, kInternalConnection, batch);
  worker_.end_turn();
  return pending;
}

void Publisher::on_answers(const ToConnection& answers) {
  for (const Confirm& confirm : answers.confirms) {
    for (PublishTag tag = confirm.first; tag <= confirm.last; tag = tag.next()) {
      const auto found = pending_.find(tag);
      if (found == pending_.end()) continue;  // refused by stop()
      Pending& pending = *found->second;
      pending.rejected = pending.rejected || confirm.nack;
      if (--pending.homes_left > 0) continue;
      pending.decided.cancel();
      pending_.erase(found);
    }
  }
}

}  // namespace stoat::broker::admin
