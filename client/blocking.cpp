#include "stoat/client/blocking.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>
#include <utility>

#include "stoat/client/channel.hpp"
#include "stoat/client/connection.hpp"
#include "stoat/client/consumer.hpp"

namespace stoat::client::blocking {

namespace asio = boost::asio;

// The thread of one connection.
//
// Owner: shared by the handles of the connection, its channels and consumers, all of which live on
// the program's threads; so the last one never ends on the thread it joins.
class Runtime {
 public:
  Runtime() : thread_([this] { io_.run(); }) {}
  ~Runtime() {
    io_.stop();
    thread_.join();
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  template <class T>
  std::future<T> start(asio::awaitable<T> operation) {
    return asio::co_spawn(io_, std::move(operation), asio::use_future);
  }
  template <class T>
  T wait(asio::awaitable<T> operation) {
    return start(std::move(operation)).get();
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::thread thread_;
};

// --- Connection ----------------------------------------------------------------------------------

Connection::Connection(std::shared_ptr<Runtime> runtime, client::Connection connection)
    : runtime_(std::move(runtime)),
      connection_(std::make_unique<client::Connection>(std::move(connection))) {}
Connection::Connection(Connection&&) noexcept = default;

Connection& Connection::operator=(Connection&& other) noexcept {
  if (this != &other) {
    close_within_limit();
    connection_ = std::move(other.connection_);
    runtime_ = std::move(other.runtime_);
  }
  return *this;
}

Connection::~Connection() {
  close_within_limit();
}

void Connection::close_within_limit() noexcept {
  if (connection_ == nullptr) return;
  try {
    if (connection_->is_open()) runtime_->start(connection_->close()).wait_for(kCloseLimit);
  } catch (const std::exception&) {
    // Without memory for an orderly close the socket is closed all the same.
  }
  connection_.reset();
}

Connection Connection::connect(std::string_view uri, ConnectionOptions options) {
  auto runtime = std::make_shared<Runtime>();
  auto connection = runtime->wait(client::Connection::connect(uri, std::move(options)));
  return Connection(std::move(runtime), std::move(connection));
}

Channel Connection::open_channel() {
  return Channel(runtime_, runtime_->wait(connection_->open_channel()));
}
void Connection::close() {
  runtime_->wait(connection_->close());
}
bool Connection::is_open() const {
  return connection_ != nullptr && connection_->is_open();
}

// --- Channel -------------------------------------------------------------------------------------

Channel::Channel(std::shared_ptr<Runtime> runtime, client::Channel channel)
    : runtime_(std::move(runtime)),
      channel_(std::make_unique<client::Channel>(std::move(channel))) {}
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&& other) noexcept {
  // In this order: the handle goes before the thread it needs.
  channel_ = std::move(other.channel_);
  runtime_ = std::move(other.runtime_);
  return *this;
}
Channel::~Channel() = default;

void Channel::declare_exchange(std::string exchange, std::string type, ExchangeOptions options,
                               Table arguments) {
  runtime_->wait(channel_->declare_exchange(std::move(exchange), std::move(type), options,
                                            std::move(arguments)));
}
void Channel::delete_exchange(std::string exchange, DeleteExchangeOptions options) {
  runtime_->wait(channel_->delete_exchange(std::move(exchange), options));
}
QueueInfo Channel::declare_queue(std::string queue, QueueOptions options, Table arguments) {
  return runtime_->wait(channel_->declare_queue(std::move(queue), options, std::move(arguments)));
}
void Channel::bind_queue(std::string queue, std::string exchange, std::string binding_key,
                         Table arguments) {
  runtime_->wait(channel_->bind_queue(std::move(queue), std::move(exchange), std::move(binding_key),
                                      std::move(arguments)));
}
void Channel::unbind_queue(std::string queue, std::string exchange, std::string binding_key,
                           Table arguments) {
  runtime_->wait(channel_->unbind_queue(std::move(queue), std::move(exchange),
                                        std::move(binding_key), std::move(arguments)));
}
std::uint32_t Channel::purge_queue(std::string queue) {
  return runtime_->wait(channel_->purge_queue(std::move(queue)));
}
std::uint32_t Channel::delete_queue(std::string queue, DeleteQueueOptions options) {
  return runtime_->wait(channel_->delete_queue(std::move(queue), options));
}
PublishResult Channel::publish(std::string exchange, std::string routing_key, Message message,
                               PublishOptions options) {
  return runtime_->wait(
      channel_->publish(std::move(exchange), std::move(routing_key), std::move(message), options));
}
void Channel::publish_unconfirmed(std::string exchange, std::string routing_key, Message message) {
  runtime_->wait(channel_->publish_unconfirmed(std::move(exchange), std::move(routing_key),
                                               std::move(message)));
}
void Channel::qos(std::uint16_t prefetch_count, bool global) {
  runtime_->wait(channel_->qos(prefetch_count, global));
}
Consumer Channel::consume(std::string queue, ConsumeOptions options, std::string consumer_tag,
                          Table arguments) {
  return Consumer(
      runtime_, runtime_->wait(channel_->consume(std::move(queue), options, std::move(consumer_tag),
                                                 std::move(arguments))));
}
std::optional<Delivery> Channel::get(std::string queue, GetOptions options) {
  return runtime_->wait(channel_->get(std::move(queue), options));
}
void Channel::ack(const Delivery& delivery, AckOptions options) {
  channel_->ack(delivery, options);
}
void Channel::nack(const Delivery& delivery, NackOptions options) {
  channel_->nack(delivery, options);
}
void Channel::reject(const Delivery& delivery, bool requeue) {
  channel_->reject(delivery, requeue);
}
void Channel::close() {
  runtime_->wait(channel_->close());
}

// --- Consumer ------------------------------------------------------------------------------------

Consumer::Consumer(std::shared_ptr<Runtime> runtime, client::Consumer consumer)
    : runtime_(std::move(runtime)),
      consumer_(std::make_unique<client::Consumer>(std::move(consumer))) {}
Consumer::Consumer(Consumer&&) noexcept = default;
Consumer& Consumer::operator=(Consumer&& other) noexcept {
  consumer_ = std::move(other.consumer_);
  runtime_ = std::move(other.runtime_);
  return *this;
}
Consumer::~Consumer() = default;

const std::string& Consumer::tag() const {
  return consumer_->tag();
}
std::optional<Delivery> Consumer::next() {
  return runtime_->wait(consumer_->next());
}
std::optional<Delivery> Consumer::next_for(std::chrono::milliseconds timeout) {
  return runtime_->wait(consumer_->next_for(timeout));
}
void Consumer::cancel() {
  runtime_->wait(consumer_->cancel());
}

}  // namespace stoat::client::blocking
