// Who may do what with which name.

#include "broker/channel.hpp"
#include "broker/queue_arguments.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;

}  // namespace

// "" stands for the queue that the channel declared last.
std::string Channel::queue_name(std::string_view given, wire::MethodId method) const {
  if (!given.empty()) return std::string(given);
  if (last_declared_queue_.empty()) {
    throw wire::ChannelError(ChannelErrorCode::not_found, "no previously declared queue", method);
  }
  return last_declared_queue_;
}

const QueueDef& Channel::require_queue(const std::string& name, wire::MethodId method) const {
  const std::string& vhost = connection_.vhost().name;
  const QueueDef* queue = connection_.vhost().find_queue(name);
  if (queue == nullptr) {
    throw wire::ChannelError(ChannelErrorCode::not_found, "no " + queue_in_vhost(name, vhost),
                             method);
  }
  if (queue->owner && *queue->owner != connection_.id()) throw_locked(name, vhost, method);
  return *queue;
}

const ExchangeDef& Channel::require_exchange(const std::string& name, wire::MethodId method) const {
  const ExchangeDef* exchange = connection_.vhost().find_exchange(name);
  if (exchange == nullptr) {
    throw wire::ChannelError(ChannelErrorCode::not_found,
                             "no " + exchange_in_vhost(name, connection_.vhost().name), method);
  }
  return *exchange;
}

void Channel::check_right(Right right, std::string_view kind, std::string_view name,
                          wire::MethodId method) {
  const Permissions* permissions = connection_.permissions();
  const std::string_view asked = kind == "exchange" ? permission_name(name) : name;
  if (permissions != nullptr) {
    const bool may = right == Right::configure ? permissions->may_configure(asked)
                     : right == Right::write   ? permissions->may_write(asked)
                                               : permissions->may_read(asked);
    if (may) return;
  }
  throw wire::ChannelError(ChannelErrorCode::access_refused,
                           "access to " + std::string(kind) + " '" + std::string(asked) +
                               "' in vhost '" + connection_.vhost().name + "' refused for user '" +
                               connection_.client().user + "'",
                           method);
}

void Channel::check_configure(std::string_view kind, std::string_view name, wire::MethodId method) {
  check_right(Right::configure, kind, name, method);
}

void Channel::check_write(std::string_view kind, std::string_view name, wire::MethodId method) {
  check_right(Right::write, kind, name, method);
}

void Channel::check_read(std::string_view kind, std::string_view name, wire::MethodId method) {
  check_right(Right::read, kind, name, method);
}

void Channel::refuse_default_exchange(std::string_view name, wire::MethodId method) const {
  if (!name.empty()) return;
  throw wire::ChannelError(ChannelErrorCode::access_refused,
                           "operation not permitted on the default exchange", method);
}

// Names end up in logs, reply texts and JSON: without line breaks.
void Channel::check_name(std::string_view kind, std::string_view name,
                         wire::MethodId method) const {
  if (name.find_first_of("\r\n") != std::string_view::npos) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                             std::string(kind) + " name contains a line break", method);
  }
}

void throw_locked(const std::string& queue, const std::string& vhost, wire::MethodId method) {
  throw wire::ChannelError(
      ChannelErrorCode::resource_locked,
      "cannot obtain exclusive access to locked " + queue_in_vhost(queue, vhost) +
          ". It could be originally declared on another connection or the exclusive property "
          "value does not match that of the original declaration.",
      method);
}

}  // namespace stoat::broker
