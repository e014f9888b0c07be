#include "tests/crash/confirmed_publisher.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace stoat::test {
namespace {

// Publishes that may be unconfirmed at a time.
constexpr std::size_t kWindow = 500;

std::string body_of(std::uint64_t id, std::size_t size) {
  char text[ConfirmedPublisher::kIdBytes + 1];
  std::snprintf(text, sizeof text, "%012llu", static_cast<unsigned long long>(id));
  std::string body(text);
  body.resize(std::max(size, ConfirmedPublisher::kIdBytes), '.');
  return body;
}

}  // namespace

std::uint64_t ConfirmedPublisher::id_of(std::string_view body) {
  return std::stoull(std::string(body.substr(0, kIdBytes)));
}

void ConfirmedPublisher::publish(std::uint16_t port, std::uint64_t count, const SizeOf& size) {
  run(port, count, size);
}

void ConfirmedPublisher::publish_until_lost(std::uint16_t port, std::uint64_t limit,
                                            const SizeOf& size) {
  try {
    run(port, limit, size);
  } catch (const std::exception&) {
    // Lost, as it should be; what was confirmed up to here counts.
  }
}

void ConfirmedPublisher::run(std::uint16_t port, std::uint64_t count, const SizeOf& size) {
  wire::Properties persistent;
  persistent.delivery_mode = 2;
  WireClient client(port, ConnectOptions{});
  client.confirm_select(1);
  const std::uint64_t first = next_;
  std::set<std::uint64_t> open;  // tags; tag 1 is message `first`
  std::uint64_t sent = 0;
  while (sent < count || !open.empty()) {
    if (sent < count && open.size() < kWindow) {
      const std::uint64_t id = next_++;
      client.publish(1, target_.exchange, target_.routing_key,
                     body_of(id, size ? size(id) : kIdBytes), persistent);
      open.insert(++sent);
      continue;
    }
    const Confirm confirm = client.expect_confirm(1);
    const auto to = open.find(confirm.tag);
    if (to == open.end() || confirm.nack) throw std::logic_error("a confirm that cannot be");
    const auto from = confirm.multiple ? open.begin() : to;
    for (auto tag = from; tag != std::next(to); ++tag) confirmed_.push_back(first + *tag - 1);
    open.erase(from, std::next(to));
  }
  std::sort(confirmed_.begin(), confirmed_.end());
  client.close();
}

int crash_rounds(int usual) {
  const char* text = std::getenv("STOAT_CRASH_ROUNDS");
  return text != nullptr ? std::atoi(text) : usual;
}

std::vector<Delivery> take_all(WireClient& client, std::string_view queue) {
  std::vector<Delivery> messages(client.ready_count(1, queue));
  client.consume(1, queue, "take-all", true);
  for (Delivery& message : messages) message = client.expect_delivery(1);
  client.cancel(1, "take-all");
  return messages;
}

std::vector<std::uint64_t> ids_of(const std::vector<Delivery>& messages) {
  std::vector<std::uint64_t> ids;
  ids.reserve(messages.size());
  for (const Delivery& message : messages) ids.push_back(ConfirmedPublisher::id_of(message.body));
  return ids;
}

}  // namespace stoat::test
