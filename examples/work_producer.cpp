// Puts tasks into a durable work queue; each dot in a task is a tenth of a second of work.
//
//   work_producer amqp://guest:guest@localhost [COUNT]
#include <stoat/client/blocking.hpp>

#include <cstdlib>
#include <iostream>

using namespace stoat::client;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: work_producer URI [COUNT]\n";
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : 20;

  auto connection = blocking::Connection::connect(argv[1], ConnectionOptions("work_producer"));
  auto channel = connection.open_channel();
  channel.declare_queue("work", {.durable = true});

  int acked = 0;
  for (int i = 0; i < count; ++i) {
    const std::string task = "task " + std::to_string(i + 1) + ' ' + std::string(1 + i % 4, '.');
    // The default exchange, "", routes to the queue that has the routing key for its name.
    const PublishResult result = channel.publish("", "work", Message::persistent(task));
    std::cout << "producer: " << task << ": " << to_string(result.status) << std::endl;
    if (result.acked()) ++acked;
  }

  connection.close();
  std::cout << "producer: " << acked << " of " << count << " acked" << std::endl;
  return acked == count ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "producer: " << error.what() << std::endl;
  return 1;
}
