#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.hpp"
#include "client/completion.hpp"
#include "client/consumers.hpp"
#include "client/content_assembler.hpp"
#include "client/machine_context.hpp"
#include "client/publisher.hpp"
#include "client/rpc_queue.hpp"
#include "stoat/client/message.hpp"
#include "stoat/client/options.hpp"
#include "wire/reply_code.hpp"

namespace stoat::client {

// One channel as the client sees it: what it asks, publishes and consumes. Fed with the frames of
// its number by the ConnectionMachine; writes to MachineContext::output.
//
// Owner: ConnectionMachine, from channel.open until the channel has ended and nobody holds it.
// Thread: its owner's.
// Invariants: methods go out in call order and do not wait for each other's replies; every
// completion is called exactly once, at the latest when the channel ends (and never by the
// destructor). A publish that waits for room is overtaken by later methods. Throws
// wire::ConnectionError and wire::ChannelError when the peer breaks the protocol.
class ChannelMachine {
 public:
  ChannelMachine(MachineContext& context, ChannelNumber number, ChannelIncarnation incarnation);
  ChannelMachine(const ChannelMachine&) = delete;
  ChannelMachine& operator=(const ChannelMachine&) = delete;

  // For the program. An operation on a channel that is not open ends with the reason for that.

  void open(Completion<void> done);
  // Publishes without an answer are lost with it, consumers end; deliveries that are not settled
  // go back to their queues.
  void close(Completion<void> done);

  void declare_exchange(const std::string& exchange, const std::string& type,
                        ExchangeOptions options, Table arguments, Completion<void> done);
  void delete_exchange(const std::string& exchange, DeleteExchangeOptions options,
                       Completion<void> done);
  void declare_queue(const std::string& queue, QueueOptions options, Table arguments,
                     Completion<QueueInfo> done);
  void bind_queue(const std::string& queue, const std::string& exchange,
                  const std::string& binding_key, Table arguments, Completion<void> done);
  void unbind_queue(const std::string& queue, const std::string& exchange,
                    const std::string& binding_key, Table arguments, Completion<void> done);
  // The number of messages purged or deleted.
  void purge_queue(const std::string& queue, Completion<std::uint32_t> done);
  void delete_queue(const std::string& queue, DeleteQueueOptions options,
                    Completion<std::uint32_t> done);

  void publish(Publisher::Publish publish);

  void qos(std::uint16_t prefetch_count, bool global, Completion<void> done);
  struct Subscription {
    ConsumerId consumer;
    std::string consumer_tag;
  };
  // With an empty consumer_tag one is made up here, so that deliveries can be told apart before
  // consume-ok.
  void consume(const std::string& queue, std::string consumer_tag, ConsumeOptions options,
               Table arguments, Completion<Subscription> done);
  // nullopt: nothing came within the timeout, or the consumer was cancelled by this program.
  void next_delivery(ConsumerId consumer, std::optional<std::chrono::milliseconds> timeout,
                     DeliveryBuffer::Next done);
  void cancel(ConsumerId consumer, Completion<void> done);
  // Nobody will take its deliveries any more: it is cancelled, what was not taken goes back.
  void release_consumer(ConsumerId consumer);
  void get(const std::string& queue, GetOptions options, Completion<std::optional<Delivery>> done);

  // There is no answer to these. On a channel that is not open they do nothing: the broker has
  // taken the deliveries back.
  void ack(std::uint64_t delivery_tag, AckOptions options);
  void nack(std::uint64_t delivery_tag, NackOptions options);
  void reject(std::uint64_t delivery_tag, bool requeue);

  // For the connection.

  void on_method(std::string_view payload);
  void on_header(std::string_view payload);
  void on_body(std::string_view bytes);
  // Ends what is due, and notes what is due next in the context.
  void tick();
  // There may be room again for publishes that wait.
  void pump() { publisher_.pump(); }
  // Whether an answer is outstanding that the program may be waiting for.
  bool awaited() const { return rpcs_.awaited() || publisher_.awaited() || close_done_; }
  // Closes the channel for what the broker did on it.
  void close_for(const wire::ChannelError& error);
  // The connection has ended.
  void end(const Error& reason);
  // Nobody holds the channel any more: it closes itself.
  void release();

  ChannelNumber number() const { return number_; }
  ChannelIncarnation incarnation() const { return incarnation_; }
  // Its number is free.
  bool ended() const { return state_ == State::ended; }
  bool released() const { return released_; }

 private:
  enum class State { opening, open, closing, ended };

  // The method whose content is still to come.
  struct Deliver {
    ConsumerId consumer;
    Delivery delivery;
  };
  struct Get {
    Delivery delivery;
  };
  struct Return {
    std::uint16_t code = 0;
    std::string text;
    std::string exchange;
    std::string routing_key;
  };

  template <class Reply, class Method, class T, class Convert>
  void call(const Method& method, Completion<T> done, Convert convert, RpcQueue::Late late = {});
  // The same for a reply that says nothing more.
  template <class Reply, class Method>
  void order(const Method& method, Completion<void> done, RpcQueue::Late late = {});
  template <class Method>
  void send_if_open(const Method& method);
  std::optional<Error> not_open() const;
  void send_close(std::uint16_t code, std::string_view text);
  // From open to closing: nothing pending survives.
  void begin_closing(const Error& reason, bool by_program);

  void on_deliver(std::string_view payload);
  void on_get_ok(std::string_view payload);
  void on_return(std::string_view payload);
  void on_cancel(std::string_view payload);
  void on_close(std::string_view payload);
  void on_flow(std::string_view payload);
  void content_complete();

  MachineContext& context_;
  const ChannelNumber number_;
  const ChannelIncarnation incarnation_;
  State state_ = State::opening;
  bool released_ = false;
  std::optional<Error> reason_;  // why it is closing or ended
  Completion<void> close_done_;
  SteadyTime close_deadline_ = SteadyTime::max();

  RpcQueue rpcs_;
  Publisher publisher_;
  Consumers consumers_;
  ContentAssembler assembler_;
  std::variant<std::monostate, Deliver, Get, Return> incoming_;
  std::optional<Delivery> got_;  // complete, for the basic.get that is due
};

}  // namespace stoat::client
