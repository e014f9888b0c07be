#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ceiling_connection.hpp"
#include "bench/perf_poller.hpp"

namespace stoat::bench {

// The ceiling: one thread that frames, copies and forwards, and keeps nothing. No durability, no
// routing but the default exchange and fan-out, no permissions, no checks, no errors. What it
// reaches on a machine no honest broker on one core passes there.
//
// Owner: main. Thread: one.
class CeilingBroker {
 public:
  // Listens on that port of the loopback interface; 0: any.
  explicit CeilingBroker(std::uint16_t port);
  ~CeilingBroker();
  CeilingBroker(const CeilingBroker&) = delete;
  CeilingBroker& operator=(const CeilingBroker&) = delete;

  std::uint16_t port() const;
  // Serves for as long as the process lives.
  [[noreturn]] void run();

 private:
  friend class CeilingConnection;

  // --- for CeilingConnection ---
  CeilingQueue& queue(std::string_view name);
  void bind(std::string_view exchange, std::string_view queue);
  void remove_queue(std::string_view name);
  void remove_exchange(std::string_view name);
  void subscribe(std::string_view queue, CeilingConsumer consumer);
  // The queues of a publish; looked up again only when the name differs from the last one's.
  const std::vector<CeilingQueue*>& route(std::string_view exchange, std::string_view routing_key);
  void put(CeilingQueue& queue, std::string_view content);
  // Gives what waits to consumers that have room.
  void pump(CeilingQueue& queue);
  // Its output is to be sent at the end of the turn.
  void touch(CeilingConnection& connection);
  void hold_back(CeilingConnection& publisher, CeilingQueue& queue);

  void accept();
  void serve(std::uint32_t index, std::uint32_t events);
  void end_turn();
  void drop(std::uint32_t index);

  int listener_ = -1;
  PerfPoller poller_;
  std::map<std::string, std::unique_ptr<CeilingQueue>, std::less<>> queues_;
  std::map<std::string, std::vector<CeilingQueue*>, std::less<>> exchanges_;
  std::string last_exchange_, last_routing_key_;
  std::vector<CeilingQueue*> last_route_;
  bool route_known_ = false;
  std::vector<std::unique_ptr<CeilingConnection>> connections_;  // by index; null: free
  std::vector<CeilingConnection*> touched_;
  std::vector<char> scratch_;
};

}  // namespace stoat::bench
