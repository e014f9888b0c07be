#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/ids.hpp"
#include "client/channel_machine.hpp"
#include "client/completion.hpp"
#include "client/machine_context.hpp"
#include "stoat/client/options.hpp"
#include "stoat/client/uri.hpp"
#include "wire/frame.hpp"

namespace stoat::client {

// The client's end of one AMQP connection, from protocol header to close-ok, without a socket: fed
// with the bytes that came and with the time, it says what is to be written and calls completions.
//
//   machine.start(now, deadline, opened);
//   loop: write what take_output() gives, then output_written(); receive() what was read;
//         tick() at next_deadline(); once finished(), write the rest and close the socket.
//
// Owner: one Session. Thread: its owner's strand.
// Invariants: no frame is sent after connection.close or close-ok; when the connection has ended,
// nothing is pending on any channel, and every later operation ends with the same reason.
// Does not resolve, connect or reconnect.
class ConnectionMachine {
 public:
  ConnectionMachine(Uri uri, ConnectionOptions options);

  // TCP is up: begins the login, which must end before the deadline.
  void start(SteadyTime now, SteadyTime deadline, Completion<void> opened);
  void receive(std::string_view bytes, SteadyTime now);
  // The socket is gone, or reading or writing failed.
  void socket_lost(const std::string& why, SteadyTime now);
  void tick(SteadyTime now);
  SteadyTime next_deadline() const { return context_.next_deadline; }

  // Swaps what is to be written next into buffer, which must be kept until output_written().
  // REQUIRES: what was taken before has been written.
  void take_output(std::string& buffer);
  void output_written(SteadyTime now);
  bool has_output() const { return !context_.output.empty(); }
  // False while too much is delivered that the program has not taken. While an answer is awaited
  // reading goes on up to kMaxOvershoot times the limit, since the program may be busy waiting.
  bool wants_read() const;
  static constexpr std::size_t kMaxOvershoot = 4;
  // Nothing will be received any more.
  bool finished() const { return state_ == State::ended; }
  bool is_open() const { return state_ == State::open; }
  const std::optional<std::string>& blocked_reason() const { return context_.blocked_reason; }
  // Why the connection is not open any more.
  const std::optional<Error>& reason() const { return reason_; }

  // Sets the time for operations on channels that follow.
  void set_now(SteadyTime now) { context_.now = now; }
  const ConnectionOptions& options() const { return context_.options; }

  void open_channel(Completion<ChannelIncarnation> done);
  // nullptr: there is no such channel (any more). It stays until release_channel().
  ChannelMachine* channel(ChannelIncarnation incarnation);
  void release_channel(ChannelIncarnation incarnation);
  // Why a channel that is not there is gone.
  Error gone_reason() const;
  // Orderly. The completion comes with close-ok, or with an error at the rpc_timeout.
  void close(Completion<void> done);

 private:
  enum class State { idle, start, tune, open_ok, open, closing, ended };

  void handle(const wire::FrameDecoder::Event& event);
  void on_connection_method(std::string_view payload);
  void on_channel_frame(const wire::FrameDecoder::Event& event);
  void on_start(std::string_view payload);
  void on_tune(std::string_view payload);
  void on_open_ok();
  void on_close(std::string_view payload);
  // Whether the peer answers with its own protocol header: it speaks another version.
  bool takes_protocol_header(std::string_view bytes);

  template <class Method>
  void send(const Method& method);
  void break_off(const wire::ConnectionError& error);
  // Everything pending ends with this reason.
  void fail_pending(const Error& reason);
  void end(const Error& reason);
  void forget_if_ended(ChannelMachine& channel);
  void check_heartbeat();
  void pump_channels();
  std::optional<ChannelNumber> free_number();

  MachineContext context_;
  const Uri uri_;
  State state_ = State::idle;
  std::optional<Error> reason_;
  Completion<void> opened_;
  SteadyTime open_deadline_ = SteadyTime::max();
  Completion<void> close_done_;
  SteadyTime close_deadline_ = SteadyTime::max();

  wire::FrameDecoder decoder_;
  std::uint16_t channel_max_ = 0;
  std::chrono::milliseconds heartbeat_{0};  // 0: none
  SteadyTime last_received_;
  SteadyTime last_sent_;
  std::optional<std::string> other_header_;  // the peer's, when it answers with a protocol header
  bool received_any_ = false;

  std::unordered_map<ChannelIncarnation, std::unique_ptr<ChannelMachine>> channels_;
  std::map<ChannelNumber, ChannelMachine*> by_number_;  // those whose number is taken
  ChannelNumber last_number_;
  ChannelNumber last_pumped_;  // the next to be given room is the one after it
};

}  // namespace stoat::client
