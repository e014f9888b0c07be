#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "broker/worker.hpp"

// Direct reply-to: the name that a client consumes from and puts into reply-to, and the generated
// names that stand for one requester's channel.

namespace stoat::broker {

inline constexpr std::string_view kReplyQueueName = "amq.rabbitmq.reply-to";

inline bool is_reply_queue_name(std::string_view name) {
  return name.size() > kReplyQueueName.size() && name.starts_with(kReplyQueueName) &&
         name[kReplyQueueName.size()] == '.';
}

std::string reply_queue_name(const ReplyAddress& address);
// nullopt when the name was not made by reply_queue_name().
std::optional<ReplyAddress> parse_reply_queue_name(std::string_view name);

}  // namespace stoat::broker
