#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoat::client {

// Puts a message together from its content header and body frames, after a method that carries
// content (basic.deliver, basic.return, basic.get-ok). Grows with what has come, never with what
// was announced.
//
// Owner: one ChannelMachine. Thread: its owner's.
// Throws wire::ConnectionError when a frame is not the one that must come next, and
// wire::ChannelError for a message beyond the limit, which ends only the channel.
class ContentAssembler {
 public:
  explicit ContentAssembler(std::size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  bool idle() const { return step_ == Step::idle; }
  // A content header must come next. REQUIRES: idle().
  void begin();
  // The payload of a header frame. True: the message is complete.
  bool on_header(std::string_view payload);
  // Bytes of a body frame. True: the message is complete.
  bool on_body(std::string_view bytes);

  // The complete message; valid until begin().
  std::string& properties() { return properties_; }
  std::string& body() { return body_; }

 private:
  enum class Step { idle, header, body };

  std::size_t max_body_bytes_;
  Step step_ = Step::idle;
  std::uint64_t body_left_ = 0;
  std::string properties_;  // flags and list, checked
  std::string body_;
};

}  // namespace stoat::client
