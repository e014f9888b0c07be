#include "bench/ceiling_broker.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace stoat::bench {
namespace {

constexpr std::size_t kScratchBytes = 256 * 1024;
constexpr std::uint32_t kListener = UINT32_MAX;  // the poller's index for it
constexpr std::int64_t kForever_ns = std::int64_t{3600} * 1'000'000'000;
constexpr int kBacklog = 1024;
// Publishers of a queue that holds more wait until it holds half.
constexpr std::size_t kMaxWaitingBytes = 16 << 20;

}  // namespace

CeilingBroker::CeilingBroker(std::uint16_t port)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      scratch_(kScratchBytes) {
  const int one = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, kBacklog) != 0) {
    const int error = errno;
    ::close(listener_);
    throw std::system_error(error, std::generic_category(), "cannot listen");
  }
  poller_.add(listener_, kListener);
}

CeilingBroker::~CeilingBroker() {
  ::close(listener_);
}

std::uint16_t CeilingBroker::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

void CeilingBroker::run() {
  for (;;) {
    for (const epoll_event& event : poller_.wait(kForever_ns)) {
      if (event.data.u32 == kListener)
        accept();
      else
        serve(event.data.u32, event.events);
    }
    end_turn();
  }
}

void CeilingBroker::accept() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const auto free = std::find(connections_.begin(), connections_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(free - connections_.begin());
  if (free == connections_.end()) connections_.emplace_back();
  connections_[index] = std::make_unique<CeilingConnection>(*this, fd, index);
  poller_.add(fd, index);
}

void CeilingBroker::serve(std::uint32_t index, std::uint32_t events) {
  CeilingConnection* connection = connections_[index].get();
  if (connection == nullptr) return;
  if (events & EPOLLOUT) touch(*connection);
  const bool readable = events & (EPOLLIN | EPOLLHUP | EPOLLERR);
  if (readable && !connection->held_back && !connection->receive(scratch_)) drop(index);
}

void CeilingBroker::end_turn() {
  while (!touched_.empty()) {
    for (CeilingConnection* connection : std::exchange(touched_, {})) {
      connection->touched = false;
      if (!connection->flush()) {
        drop(connection->index());
        continue;
      }
      // Its output may have been what held deliveries up; more of them make another round.
      if (!connection->socket_full()) connection->pump_queues();
      const bool full = connection->socket_full();
      if (std::exchange(connection->awaits_socket, full) != full)
        poller_.want(connection->fd(), connection->index(), !connection->held_back, full);
    }
  }
}

void CeilingBroker::drop(std::uint32_t index) {
  CeilingConnection* gone = connections_[index].get();
  for (const auto& [name, queue] : queues_) {
    std::erase_if(queue->consumers, [&](const auto& c) { return c.connection == gone; });
    std::erase(queue->held_back, gone);
  }
  std::erase(touched_, gone);
  connections_[index].reset();
}

CeilingQueue& CeilingBroker::queue(std::string_view name) {
  const auto found = queues_.find(name);
  if (found != queues_.end()) return *found->second;
  auto queue = std::make_unique<CeilingQueue>();
  queue->name = name;
  route_known_ = false;
  return *queues_.emplace(name, std::move(queue)).first->second;
}

void CeilingBroker::bind(std::string_view exchange, std::string_view name) {
  CeilingQueue* bound = &queue(name);
  std::vector<CeilingQueue*>& queues = exchanges_.try_emplace(std::string(exchange)).first->second;
  if (std::find(queues.begin(), queues.end(), bound) == queues.end()) queues.push_back(bound);
  route_known_ = false;
}

void CeilingBroker::remove_queue(std::string_view name) {
  CeilingQueue& emptied = queue(name);
  emptied.waiting.clear();
  emptied.waiting_bytes = 0;
  // The queue itself stays, for a publish or a consumer that names it.
  for (auto& [exchange, queues] : exchanges_) std::erase(queues, &emptied);
  route_known_ = false;
}

void CeilingBroker::remove_exchange(std::string_view name) {
  if (const auto found = exchanges_.find(name); found != exchanges_.end()) exchanges_.erase(found);
  route_known_ = false;
}

void CeilingBroker::subscribe(std::string_view name, CeilingConsumer consumer) {
  CeilingQueue& consumed = queue(name);
  consumed.consumers.push_back(std::move(consumer));
  pump(consumed);
}

const std::vector<CeilingQueue*>& CeilingBroker::route(std::string_view exchange,
                                                       std::string_view routing_key) {
  if (route_known_ && exchange == last_exchange_ && routing_key == last_routing_key_)
    return last_route_;
  if (exchange.empty()) {
    last_route_ = {&queue(routing_key)};
  } else {
    const auto found = exchanges_.find(exchange);
    last_route_ = found == exchanges_.end() ? std::vector<CeilingQueue*>{} : found->second;
  }
  last_exchange_ = exchange;
  last_routing_key_ = routing_key;
  route_known_ = true;
  return last_route_;
}

void CeilingBroker::put(CeilingQueue& queue, std::string_view content) {
  if (queue.waiting.empty()) {
    for (std::size_t i = 0; i < queue.consumers.size(); ++i) {
      const CeilingConsumer& consumer =
          queue.consumers[queue.next_consumer++ % queue.consumers.size()];
      if (!consumer.connection->can_take(consumer.no_ack)) continue;
      consumer.connection->deliver(consumer, content);
      return touch(*consumer.connection);
    }
  }
  queue.waiting.emplace_back(content);
  queue.waiting_bytes += content.size();
}

void CeilingBroker::pump(CeilingQueue& queue) {
  std::size_t without_room = 0;
  while (!queue.waiting.empty() && without_room < queue.consumers.size()) {
    const CeilingConsumer& consumer =
        queue.consumers[queue.next_consumer++ % queue.consumers.size()];
    if (!consumer.connection->can_take(consumer.no_ack)) {
      ++without_room;
      continue;
    }
    without_room = 0;
    consumer.connection->deliver(consumer, queue.waiting.front());
    queue.waiting_bytes -= queue.waiting.front().size();
    queue.waiting.pop_front();
    touch(*consumer.connection);
  }
  if (queue.waiting_bytes > kMaxWaitingBytes / 2) return;
  for (CeilingConnection* publisher : std::exchange(queue.held_back, {})) {
    publisher->held_back = false;
    poller_.want(publisher->fd(), publisher->index(), true, publisher->awaits_socket);
  }
}

void CeilingBroker::touch(CeilingConnection& connection) {
  if (std::exchange(connection.touched, true)) return;
  touched_.push_back(&connection);
}

// Without a consumer nothing would ever let it go on.
void CeilingBroker::hold_back(CeilingConnection& publisher, CeilingQueue& queue) {
  if (queue.waiting_bytes <= kMaxWaitingBytes || queue.consumers.empty()) return;
  if (std::exchange(publisher.held_back, true)) return;
  queue.held_back.push_back(&publisher);
  poller_.want(publisher.fd(), publisher.index(), false, publisher.awaits_socket);
}

}  // namespace stoat::bench
