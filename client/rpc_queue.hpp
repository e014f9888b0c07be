#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "client/completion.hpp"
#include "wire/method_types.hpp"

namespace stoat::client {

// The methods of one channel that wait for their reply, in the order they were sent. A broker
// replies in that order, except for consume-ok and cancel-ok: RabbitMQ lets the queue send those,
// and replies to later methods may overtake them. So these are matched by consumer tag, all others
// by order. One whose time has passed keeps its place until its reply comes, so that the reply is
// not taken for that of a later one.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariant: a Done is called at most once, and by fail_all() at the latest.
class RpcQueue {
 public:
  static constexpr std::size_t kMaxPending = 4096;

  // The reply's payload, or why there is none. Throws wire::ConnectionError when the payload
  // cannot be decoded.
  using Done = UniqueFunction<void(Result<std::string_view>)>;
  // What to do about a reply that came after its time, such as cancelling a consumer nobody has.
  using Late = UniqueFunction<void()>;

  bool full() const { return pending_.size() >= kMaxPending; }
  struct Expected {
    wire::MethodId reply;
    wire::MethodId other_reply = {};  // a second method that may answer, as get-empty does
    std::string consumer_tag = {};    // of consume-ok and cancel-ok
  };
  // REQUIRES: !full().
  void push(Expected expected, SteadyTime deadline, Done done, Late late = {});
  // Whether this is the reply that must come next, of those that come in order.
  bool expects(wire::MethodId id);
  // consumer_tag: of consume-ok and cancel-ok. Throws wire::ConnectionError when nothing waits for
  // this reply.
  void on_reply(wire::MethodId id, std::string_view payload, std::string_view consumer_tag = {});

  // Whether anyone waits.
  bool awaited() const;
  // Ends those whose time has passed; the earliest deadline of the others, or max().
  SteadyTime expire(SteadyTime now, const Error& timeout);
  void fail_all(const Error& error);

 private:
  struct Pending {
    Expected expected;
    SteadyTime deadline;
    Done done;  // empty: its time has passed
    Late late;
  };
  std::deque<Pending>::iterator find(wire::MethodId id, std::string_view consumer_tag);
  std::deque<Pending> pending_;
};

}  // namespace stoat::client
