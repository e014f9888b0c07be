// Publishes orders to a topic exchange and waits for the broker's confirm of each.
//
//   topic_producer amqp://guest:guest@localhost [COUNT]
//
// Run topic_consumer first: it makes the queue that these messages are for.
#include <stoat/client/blocking.hpp>

#include <array>
#include <cstdlib>
#include <iostream>

using namespace stoat::client;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: topic_producer URI [COUNT]\n";
    return 2;
  }
  const int count = argc > 2 ? std::atoi(argv[2]) : 20;
  constexpr std::array<const char*, 5> kRoutingKeys{"orders.eu.created", "orders.us.created",
                                                    "orders.us.paid", "orders.eu.west.shipped",
                                                    "orders.shipped"};

  auto connection = blocking::Connection::connect(argv[1], ConnectionOptions("topic_producer"));
  auto channel = connection.open_channel();
  channel.declare_exchange("shop", "topic", {.durable = true});
  std::cout << "producer: publishing " << count << " messages to topic exchange 'shop'"
            << std::endl;

  int acked = 0;
  for (int i = 0; i < count; ++i) {
    const std::string routing_key = kRoutingKeys[i % kRoutingKeys.size()];
    const std::string body = "order " + std::to_string(i + 1);
    const PublishResult result =
        channel.publish("shop", routing_key, Message::persistent(body), {.mandatory = true});
    std::cout << "producer: " << body << " as " << routing_key << ": " << to_string(result.status)
              << (result.text.empty() ? "" : " (" + result.text + ")") << std::endl;
    if (result.acked()) ++acked;
  }

  connection.close();
  std::cout << "producer: " << acked << " of " << count << " acked" << std::endl;
  return acked == count ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "producer: " << error.what() << std::endl;
  return 1;
}
