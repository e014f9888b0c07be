#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

namespace stoat::bench {

class CeilingBroker;
class CeilingConnection;

struct CeilingConsumer {
  CeilingConnection* connection = nullptr;
  std::string tag;
  bool no_ack = false;
};

// Messages, as their header and body frames, until a consumer has room for them.
struct CeilingQueue {
  std::string name;
  std::deque<std::string> waiting;
  std::size_t waiting_bytes = 0;
  std::vector<CeilingConsumer> consumers;
  std::size_t next_consumer = 0;
  std::vector<CeilingConnection*> held_back;  // publishers that are not read until it is shorter
};

// One client of the ceiling; all its channels count as one.
//
// Owner: CeilingBroker. Thread: its owner's.
class CeilingConnection {
 public:
  CeilingConnection(CeilingBroker& broker, int fd, std::uint32_t index);
  ~CeilingConnection();
  CeilingConnection(const CeilingConnection&) = delete;
  CeilingConnection& operator=(const CeilingConnection&) = delete;

  int fd() const { return fd_; }
  std::uint32_t index() const { return index_; }
  // Reads once and does what was asked. False: the client is gone.
  bool receive(std::span<char> scratch);
  // Sends what the socket takes. False: the client is gone.
  bool flush();
  bool socket_full() const { return out_.size() > out_sent_; }
  // Room in its prefetch window and its output.
  bool can_take(bool no_ack) const;
  // Lets the queues it consumes from deliver.
  void pump_queues();
  void deliver(const CeilingConsumer& consumer, std::string_view content);

  bool touched = false;        // in the broker's list of this turn
  bool awaits_socket = false;  // the poller looks for room to write
  bool held_back = false;      // not to be read

 private:
  template <class M>
  void write(ChannelNumber channel, const M& method) {
    wire::append_method(out_, channel, method);
  }
  void take(const wire::FrameDecoder::Event& event);
  void take_header(const wire::FrameDecoder::Event& event);
  void take_method(ChannelNumber channel, std::string_view payload);
  void take_connection_method(wire::MethodId id);
  void take_topology_method(ChannelNumber channel, wire::MethodId id, std::string_view payload);
  void take_basic_method(ChannelNumber channel, wire::MethodId id, std::string_view payload);
  void finish_publish();
  void confirm();

  CeilingBroker& broker_;
  const int fd_;
  const std::uint32_t index_;
  wire::FrameDecoder decoder_;
  bool greeted_ = false;
  std::string greeting_;
  std::string out_;
  std::size_t out_sent_ = 0;

  const std::vector<CeilingQueue*>* route_ = nullptr;  // of the publish being read
  std::string content_;                                // its frames so far
  std::uint64_t body_left_ = 0;
  bool confirms_ = false;
  ChannelNumber publish_channel_;
  std::uint64_t published_ = 0, confirmed_ = 0;

  std::vector<CeilingQueue*> consumes_from_;
  std::uint16_t prefetch_ = 0;
  std::uint64_t delivered_ = 0, acked_ = 0;
};

}  // namespace stoat::bench
