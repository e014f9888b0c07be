#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/wire_client.hpp"

namespace stoat::test {

// Publishes persistent numbered messages with confirms, and knows afterwards which of them the
// broker has confirmed: those must survive whatever comes.
//
// Owner: one test. Thread: one; several publishers may run at once.
class ConfirmedPublisher {
 public:
  struct Target {
    std::string exchange;
    std::string routing_key;
  };
  // The body's size for a message; at least kIdBytes.
  using SizeOf = std::function<std::size_t(std::uint64_t id)>;

  ConfirmedPublisher(Target target, std::uint64_t first_id) : target_(target), next_(first_id) {}

  // Publishes `count` messages and waits for all their confirms.
  void publish(std::uint16_t port, std::uint64_t count, const SizeOf& size = {});
  // Publishes until the connection is lost, or `limit` messages are out.
  void publish_until_lost(std::uint16_t port, std::uint64_t limit, const SizeOf& size = {});

  std::uint64_t next_id() const { return next_; }
  // In ascending order.
  const std::vector<std::uint64_t>& confirmed() const { return confirmed_; }

  // The id that a body carries.
  static std::uint64_t id_of(std::string_view body);

  static constexpr std::size_t kIdBytes = 12;

 private:
  void run(std::uint16_t port, std::uint64_t count, const SizeOf& size);

  Target target_;
  std::uint64_t next_;
  std::vector<std::uint64_t> confirmed_;
};

// How often a test kills the broker: `usual`, or what STOAT_CRASH_ROUNDS says; the tests labelled
// long set it.
int crash_rounds(int usual);

// All messages of a queue in order, taken with no_ack; the queue is empty then.
std::vector<Delivery> take_all(WireClient& client, std::string_view queue);
std::vector<std::uint64_t> ids_of(const std::vector<Delivery>& messages);

}  // namespace stoat::test
