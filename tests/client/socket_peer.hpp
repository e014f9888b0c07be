#pragma once

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <string>
#include <string_view>

#include "base/endian.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"

namespace stoat::client::test {

// A broker's end of a real socket on a port of the system's choice, driven step by step by the
// test's thread while the client runs on its own.
//
// Owner: one test. Thread: its owner's; every call blocks until the client has done its part.
class SocketPeer {
 public:
  SocketPeer() : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}), socket_(io_) {}

  std::string uri() const {
    return "amqp://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

  // Takes the client's connection and sees it through the login.
  void accept_and_log_in(wire::connection::Tune tune = {2047, 131'072, 0}) {
    acceptor_.accept(socket_);
    std::string header(wire::kProtocolHeader.size(), ' ');
    boost::asio::read(socket_, boost::asio::buffer(header));
    EXPECT_EQ(header, wire::kProtocolHeader);
    send(0, wire::connection::Start{
                .server_properties = {}, .mechanisms = "PLAIN", .locales = "en_US"});
    read<wire::connection::StartOk>(0);
    send(0, tune);
    read<wire::connection::TuneOk>(0);
    read<wire::connection::Open>(0);
    send(0, wire::connection::OpenOk{});
  }
  void open_channel(std::uint16_t number) {
    read<wire::channel::Open>(number);
    send(number, wire::channel::OpenOk{});
  }

  template <class Method>
  void send(std::uint16_t channel, const Method& method) {
    std::string bytes;
    wire::append_method(bytes, ChannelNumber(channel), method);
    send_bytes(bytes);
  }
  void send_bytes(const std::string& bytes) {
    boost::asio::write(socket_, boost::asio::buffer(bytes));
  }
  // The client's next frame that is not a heartbeat, which must be this method. Views in it live
  // as long as the peer.
  template <class Method>
  Method read(std::uint16_t channel) {
    Frame frame = read_frame();
    while (frame.type == wire::kFrameHeartbeat) frame = read_frame();
    EXPECT_EQ(frame.channel, channel);
    const std::string& payload = kept_.emplace_back(std::move(frame.payload));
    const auto method = wire::decode_method<Method>(payload);
    EXPECT_TRUE(method) << "another method";
    return method.value_or(Method{});
  }
  // Its next frame that is a publish, with its content.
  void read_publish(std::uint16_t channel) {
    read<wire::basic::Publish>(channel);
    const auto payload = read_frame().payload;
    const auto header = wire::ContentHeader::decode(payload);
    ASSERT_TRUE(header);
    for (std::size_t size = 0; size < header->body_size;) size += read_frame().payload.size();
  }
  bool next_is_heartbeat() { return read_frame().type == wire::kFrameHeartbeat; }
  // The client closes its end before it sends anything more than heartbeats.
  bool reads_end() {
    try {
      while (next_is_heartbeat()) {
      }
      return false;
    } catch (const boost::system::system_error& error) {
      return error.code() == boost::asio::error::eof ||
             error.code() == boost::asio::error::connection_reset;
    }
  }
  void answer_close() {
    read<wire::connection::Close>(0);
    send(0, wire::connection::CloseOk{});
  }
  // As if the machine had gone.
  void reset() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }

 private:
  struct Frame {
    std::uint8_t type;
    std::uint16_t channel;
    std::string payload;
  };
  Frame read_frame() {
    char header[wire::kFrameHeaderBytes];
    boost::asio::read(socket_, boost::asio::buffer(header));
    Frame frame{static_cast<std::uint8_t>(header[0]), load_big<std::uint16_t>(header + 1), {}};
    frame.payload.resize(load_big<std::uint32_t>(header + 3) + 1);  // with the end mark
    boost::asio::read(socket_, boost::asio::buffer(frame.payload));
    EXPECT_EQ(frame.payload.back(), wire::kFrameEnd);
    frame.payload.pop_back();
    return frame;
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::socket socket_;
  std::list<std::string> kept_;  // payloads that views point into
};

}  // namespace stoat::client::test
