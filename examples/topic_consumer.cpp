// Takes orders from a durable queue that is bound to a topic exchange, and acks each.
//
//   topic_consumer amqp://guest:guest@localhost [COUNT]
//
// Ends after COUNT messages, or when none comes for ten seconds.
#include <stoat/client/blocking.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace stoat::client;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: topic_consumer URI [COUNT]\n";
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : 20;

  auto connection = blocking::Connection::connect(argv[1], ConnectionOptions("topic_consumer"));
  auto channel = connection.open_channel();
  channel.declare_exchange("shop", "topic", {.durable = true});
  channel.declare_queue("shop.orders", {.durable = true});
  // * stands for exactly one word, # for any number of them, also none.
  for (const char* binding_key : {"orders.*.created", "orders.*.paid", "orders.#.shipped"}) {
    channel.bind_queue("shop.orders", "shop", binding_key);
    std::cout << "consumer: queue 'shop.orders' is bound with " << binding_key << std::endl;
  }

  channel.qos(10);  // at most ten deliveries that are not acked yet
  auto consumer = channel.consume("shop.orders");
  std::cout << "consumer: waiting for " << count << " messages" << std::endl;

  int received = 0;
  while (received < count) {
    const auto delivery = consumer.next_for(10s);
    if (!delivery) break;
    ++received;
    channel.ack(*delivery);
    std::cout << "consumer: " << delivery->body << " as " << delivery->routing_key << ": acked"
              << (delivery->redelivered ? " (redelivered)" : "") << std::endl;
  }

  consumer.cancel();
  connection.close();
  std::cout << "consumer: received " << received << " of " << count << std::endl;
  return received == count ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "consumer: " << error.what() << std::endl;
  return 1;
}
