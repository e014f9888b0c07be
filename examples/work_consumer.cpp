// Works on the tasks of a durable queue, one at a time. Start several: each gets the next task
// when it has acked its last one, so a slow one takes fewer. Stop one in the middle of a task and
// another gets that task, marked as redelivered.
//
//   work_consumer amqp://guest:guest@localhost [COUNT]
//
// Ends after COUNT tasks, or when none comes for ten seconds.
#include <stoat/client/blocking.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

using namespace stoat::client;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: work_consumer URI [COUNT]\n";
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : 20;

  auto connection = blocking::Connection::connect(argv[1], ConnectionOptions("work_consumer"));
  auto channel = connection.open_channel();
  channel.declare_queue("work", {.durable = true});
  channel.qos(1);  // the next task only when this one is settled
  auto consumer = channel.consume("work");
  std::cout << "consumer: waiting for " << count << " tasks" << std::endl;

  int done = 0;
  while (done < count) {
    const auto delivery = consumer.next_for(10s);
    if (!delivery) break;
    std::cout << "consumer: " << delivery->body << (delivery->redelivered ? " (redelivered)" : "")
              << std::endl;
    std::this_thread::sleep_for(100ms * std::ranges::count(delivery->body, '.'));
    channel.ack(*delivery);  // only now: a task that was not finished is not lost
    ++done;
  }

  consumer.cancel();
  connection.close();
  std::cout << "consumer: " << done << " tasks done" << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << "consumer: " << error.what() << std::endl;
  return 1;
}
