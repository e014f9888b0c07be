#include "client/rpc_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace stoat::client {

void RpcQueue::push(wire::MethodId reply, wire::MethodId other_reply, SteadyTime deadline,
                    Done done, Late late) {
  STOAT_ASSERT(!full());
  pending_.push_back({reply, other_reply, deadline, std::move(done), std::move(late)});
}

bool RpcQueue::expects(wire::MethodId id) const {
  return !pending_.empty() && (pending_.front().reply == id || pending_.front().other_reply == id);
}

void RpcQueue::on_reply(wire::MethodId id, std::string_view payload) {
  if (!expects(id))
    throw wire::ConnectionError(wire::ConnectionErrorCode::command_invalid,
                                "a reply that nothing was asked for", id);
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
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
