#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "client/completion.hpp"
#include "client/confirm_tracker.hpp"
#include "client/machine_context.hpp"
#include "client/rpc_queue.hpp"

namespace stoat::client {

// The publishing side of one channel. A publish goes out when the window of unconfirmed ones, the
// unsent bytes and channel.flow leave room for it, else it waits its turn. The first publish that
// wants a confirm puts the channel into confirm mode.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariants: publishes go out in call order; every Completion is called exactly once: with an
// error when the message was never sent, with a result when it was.
class Publisher {
 public:
  static constexpr std::size_t kMaxWaiting = 65'536;

  struct Publish {
    std::string exchange;
    std::string routing_key;
    std::string properties;  // encoded
    std::string body;
    bool mandatory = false;
    bool confirm = true;  // false: done once it is on its way, and the result says nothing
    std::optional<std::chrono::milliseconds> timeout;  // else publish_timeout
    Completion<PublishResult> done;
  };

  Publisher(MachineContext& context, ChannelNumber channel, RpcQueue& rpcs)
      : context_(context), channel_(channel), rpcs_(rpcs) {}

  // REQUIRES: the channel is open.
  void publish(Publish publish);
  // Sends what waits, as far as there is room.
  void pump();

  // Throws wire::ConnectionError for a tag that was never published.
  void on_confirm(std::uint64_t tag, bool multiple, PublishStatus status);
  void on_return(std::uint16_t code, std::string_view text, std::string_view exchange,
                 std::string_view routing_key, std::string_view body);
  void on_flow(bool active);

  // Whether a confirm is outstanding.
  bool awaited() const { return confirms_.outstanding() > 0; }
  // Ends what is due; the earliest deadline of the rest, or max().
  SteadyTime expire(SteadyTime now);
  // The channel is gone: what waits fails, what was sent is lost.
  void end(const Error& reason);

 private:
  struct Waiting {
    Publish publish;
    SteadyTime deadline;
  };
  bool has_room(const Publish& publish) const;
  void send(Publish publish, SteadyTime deadline);
  std::optional<Error> select_confirms();

  MachineContext& context_;
  const ChannelNumber channel_;
  RpcQueue& rpcs_;
  bool confirms_selected_ = false;
  bool flow_active_ = true;
  ConfirmTracker confirms_;
  std::deque<Waiting> waiting_;
};

}  // namespace stoat::client
