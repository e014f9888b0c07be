#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "client/completion.hpp"
#include "stoat/client/message.hpp"

namespace stoat::client {

// The publishes of one channel in confirm mode that have no answer yet. Numbers them as the broker
// does (1, 2, …), takes acks and nacks in any order, single and multiple, and matches basic.return,
// which carries no tag, to the mandatory publish it belongs to: returns come in publish order and
// before the ack of their message.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Invariant: every Done given to add() is called exactly once.
class ConfirmTracker {
 public:
  // Never called with an error.
  using Done = Completion<PublishResult>;

  // What a returned message is recognised by.
  struct Fingerprint {
    std::size_t route = 0;  // exchange and routing key
    std::size_t body = 0;
    static Fingerprint of(std::string_view exchange, std::string_view routing_key,
                          std::string_view body);
  };

  // The next tag is that of a publish someone waits for. fingerprint: only when it is mandatory.
  PublishTag add(Done done, SteadyTime deadline, std::optional<Fingerprint> fingerprint);
  // The next tag is that of a publish nobody waits for.
  PublishTag add_unwatched();

  // A basic.ack or basic.nack. Tag 0 with multiple means all. False: the tag was never published.
  // A tag that is settled already is passed over.
  [[nodiscard]] bool settle(PublishTag tag, bool multiple, PublishStatus status);
  // A basic.return. False: no mandatory publish is waiting for it.
  bool returned(const Fingerprint& fingerprint, std::uint16_t code, std::string_view text);

  // Publishes whose time has passed end as lost; their tags are still awaited, so that a late
  // answer is taken. Returns the earliest deadline of the others, SteadyTime::max() for none.
  SteadyTime expire(SteadyTime now);
  // The channel is gone: every publish without an answer is lost, with this reason.
  void fail_all(std::uint16_t code, std::string_view text);

  // Tags without an answer.
  std::size_t outstanding() const { return outstanding_; }

 private:
  struct Entry {
    Done done;  // empty: nobody waits (any more)
    SteadyTime deadline = SteadyTime::max();
    bool settled = false;
    std::optional<Fingerprint> mandatory;
    bool returned = false;  // with this code and text
    std::uint16_t return_code = 0;
    std::string return_text;
  };
  static void finish(Entry& entry, PublishResult result);
  // Ends it as returned when it was, else as lost with this reason.
  static void give_up(Entry& entry, std::uint16_t code, std::string_view text);
  void settle_one(Entry& entry, PublishStatus status);

  std::deque<Entry> entries_;  // of the tags first_tag_, first_tag_ + 1, …
  PublishTag first_tag_{1};
  std::size_t outstanding_ = 0;
};

}  // namespace stoat::client
