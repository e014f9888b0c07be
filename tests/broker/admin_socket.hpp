#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoat::test {

// A blocking socket to the admin port that speaks HTTP and the WebSocket protocol (RFC 6455) just
// as it is told to, mistakes included.
//
// Owner: one test. Thread: one.
// Errors: std::runtime_error when what comes is not what the call is for, or does not come.
class AdminSocket {
 public:
  // `receive_buffer_bytes` makes a peer that takes little; 0: the system's choice.
  explicit AdminSocket(std::uint16_t port, int receive_buffer_bytes = 0);
  ~AdminSocket();
  AdminSocket(const AdminSocket&) = delete;
  AdminSocket& operator=(const AdminSocket&) = delete;

  // --- bytes ---
  void send(std::string_view bytes);
  // All until the peer ends the connection.
  std::string receive_all();

  // --- HTTP ---
  struct Response {
    int status = 0;
    std::string head;
    std::string body;
  };
  // To a request that is the last on its connection.
  Response ask(const std::string& request);
  // Asks for a WebSocket; `fields` are further header lines, each with its line end. The status.
  int upgrade(const std::string& fields = "");

  // --- WebSocket ---
  enum Opcode : int {
    kContinuation = 0,
    kText = 1,
    kBinary = 2,
    kClose = 8,
    kPing = 9,
    kPong = 10
  };
  struct Frame {
    int opcode = 0;
    std::string payload;
    int close_code() const;  // of a close frame
  };
  void send_frame(int opcode, std::string_view payload, bool last = true, bool masked = true);
  // The head of a frame whose payload does not follow.
  void send_frame_head(int opcode, std::uint64_t size);
  void send_text(std::string_view text) { send_frame(kText, text); }
  Frame receive_frame();
  // The next text; pings are answered.
  std::string receive_text();
  std::string call(std::string_view text) {
    send_text(text);
    return receive_text();
  }

 private:
  // At least one more byte; false at the end of the connection.
  bool read_more();
  std::string take(std::size_t count);

  int fd_ = -1;
  std::string input_;
};

}  // namespace stoat::test
