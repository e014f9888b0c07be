#include "client/rpc_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace stoat::client {

void RpcQueue::push(Expected expected, SteadyTime deadline, Done done, Late late) {
  STOAT_ASSERT(!full());
  pending_.push_back({std::move(expected), deadline, std::move(done), std::move(late)});
}

std::deque<RpcQueue::Pending>::iterator RpcQueue::find(wire::MethodId id,
                                                       std::string_view consumer_tag) {
  const auto answers = [id](const Expected& expected) {
    return expected.reply == id || expected.other_reply == id;
  };
  if (!consumer_tag.empty())
    return std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
      return pending.expected.consumer_tag == consumer_tag && answers(pending.expected);
    });
  const auto next = std::find_if(pending_.begin(), pending_.end(), [](const Pending& pending) {
    return pending.expected.consumer_tag.empty();
  });
  return next != pending_.end() && answers(next->expected) ? next : pending_.end();
}

bool RpcQueue::expects(wire::MethodId id) {
  return find(id, {}) != pending_.end();
}

void RpcQueue::on_reply(wire::MethodId id, std::string_view payload,
                        std::string_view consumer_tag) {
  const auto found = find(id, consumer_tag);
  if (found == pending_.end())
    throw wire::ConnectionError(wire::ConnectionErrorCode::command_invalid,
                                "a reply that nothing was asked for", id);
  Pending pending = std::move(*found);
  pending_.erase(found);
  if (pending.done)
    pending.done(payload);
  else if (pending.late)
    pending.late();
}

bool RpcQueue::awaited() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const Pending& pending) { return static_cast<bool>(pending.done); });
}

SteadyTime RpcQueue::expire(SteadyTime now, const Error& timeout) {
  SteadyTime earliest = SteadyTime::max();
  for (Pending& pending : pending_) {
    if (!pending.done) continue;
    if (pending.deadline <= now)
      std::exchange(pending.done, {})(timeout);
    else
      earliest = std::min(earliest, pending.deadline);
  }
  return earliest;
}

void RpcQueue::fail_all(const Error& error) {
  for (Pending& pending : std::exchange(pending_, {}))
    if (pending.done) pending.done(error);
}

}  // namespace stoat::client
