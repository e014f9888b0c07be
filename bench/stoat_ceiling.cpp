// stoat-ceiling: what a broker could reach at most on this machine, to measure others against.
//
//   stoat-ceiling [PORT]
//
// Answers just enough AMQP 0-9-1 for stoat-perf, with the default exchange and fan-out only; see
// bench/ceiling_broker.hpp. Prints the port it listens on; ends with SIGTERM or SIGINT.
#include <cstdio>
#include <exception>
#include <string>

#include "bench/ceiling_broker.hpp"

int main(int argc, char** argv) try {
  const int port = argc > 1 ? std::stoi(argv[1]) : 0;
  if (argc > 2 || port < 0 || port > 65535) {
    std::fprintf(stderr, "usage: stoat-ceiling [PORT]\n");
    return 2;
  }
  stoat::bench::CeilingBroker broker(static_cast<std::uint16_t>(port));
  std::printf("listening on 127.0.0.1:%u\n", static_cast<unsigned>(broker.port()));
  std::fflush(stdout);
  broker.run();
} catch (const std::exception& error) {
  std::fprintf(stderr, "stoat-ceiling: %s\n", error.what());
  return 1;
}
