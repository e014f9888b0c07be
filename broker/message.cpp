#include "broker/message.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/endian.hpp"

namespace stoat::broker {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kFlagPersistent = 1;
// Where in the fixed part each number stands; see the drawing in message.hpp.
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kExchangeLengthAt = 2;
constexpr std::size_t kKeyLengthAt = 3;
constexpr std::size_t kPropertyLengthAt = 4;
constexpr std::size_t kPublishedAt = 8;
constexpr std::size_t kBodyLengthAt = 16;

}  // namespace

Message* Message::allocate(std::size_t capacity) {
  void* memory = std::malloc(sizeof(Message) + capacity);
  if (memory == nullptr) throw std::bad_alloc();
  auto* m = new (memory) Message();
  m->capacity_ = capacity;
  return m;
}

Message* Message::grow(Message* old, std::size_t capacity) {
  Message* bigger = allocate(capacity);
  std::memcpy(bigger->data(), old->data(), old->size_);
  bigger->size_ = old->size_;
  destroy(old);
  return bigger;
}

void Message::destroy(const Message* m) {
  m->~Message();
  std::free(const_cast<Message*>(m));
}

WallTime Message::published_at() const {
  return {static_cast<std::int64_t>(load_big<std::uint64_t>(data() + kPublishedAt))};
}

bool Message::index() {
  if (size_ < kFixedBytes || data()[0] != static_cast<char>(kVersion)) return false;
  persistent_ = (static_cast<std::uint8_t>(data()[kFlagsAt]) & kFlagPersistent) != 0;
  exchange_bytes_ = static_cast<std::uint8_t>(data()[kExchangeLengthAt]);
  key_bytes_ = static_cast<std::uint8_t>(data()[kKeyLengthAt]);
  property_bytes_ = load_big<std::uint32_t>(data() + kPropertyLengthAt);
  const auto body = load_big<std::uint64_t>(data() + kBodyLengthAt);
  const std::size_t before_body =
      kFixedBytes + exchange_bytes_ + key_bytes_ + std::size_t{property_bytes_};
  if (before_body > size_ || size_ - before_body != body) return false;
  body_bytes_ = static_cast<std::size_t>(body);
  return true;
}

MessagePtr Message::from_stored(std::string_view bytes) {
  Message* m = allocate(bytes.size());
  MessagePtr owner(m);
  std::memcpy(m->data(), bytes.data(), bytes.size());
  m->size_ = bytes.size();
  return m->index() ? owner : nullptr;
}

MessageBuilder::MessageBuilder(MessageBuilder&& other) noexcept {
  *this = std::move(other);
}

MessageBuilder& MessageBuilder::operator=(MessageBuilder&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(body_size_, other.body_size_);
  std::swap(body_left_, other.body_left_);
  return *this;
}

MessageBuilder::~MessageBuilder() {
  if (block_ != nullptr) Message::destroy(block_);
}

void MessageBuilder::start(std::string_view exchange, std::string_view routing_key,
                           std::string_view properties, bool persistent, WallTime published_at,
                           std::uint64_t body_size, std::size_t expected_now) {
  if (block_ != nullptr) Message::destroy(std::exchange(block_, nullptr));
  const std::size_t before_body =
      Message::kFixedBytes + exchange.size() + routing_key.size() + properties.size();
  const auto first = static_cast<std::size_t>(std::min<std::uint64_t>(body_size, expected_now));
  block_ = Message::allocate(before_body + first);
  char* to = block_->data();
  to[0] = static_cast<char>(kVersion);
  to[kFlagsAt] = static_cast<char>(persistent ? kFlagPersistent : 0);
  to[kExchangeLengthAt] = static_cast<char>(exchange.size());
  to[kKeyLengthAt] = static_cast<char>(routing_key.size());
  store_big(to + kPropertyLengthAt, static_cast<std::uint32_t>(properties.size()));
  store_big(to + kPublishedAt, static_cast<std::uint64_t>(published_at.ms_since_epoch));
  store_big(to + kBodyLengthAt, body_size);
  to += Message::kFixedBytes;
  for (std::string_view part : {exchange, routing_key, properties}) {
    to = std::copy(part.begin(), part.end(), to);
  }
  block_->size_ = before_body;
  body_size_ = body_size;
  body_left_ = body_size;
}

void MessageBuilder::append(std::string_view bytes) {
  STOAT_ASSERT(bytes.size() <= body_left_, bytes.size(), body_left_);
  const std::size_t needed = block_->size_ + bytes.size();
  if (needed > block_->capacity_) {
    const auto whole = static_cast<std::size_t>(block_->size_ + body_left_);
    block_ = Message::grow(block_, std::min(whole, std::max(needed, block_->capacity_ * 2)));
  }
  std::copy(bytes.begin(), bytes.end(), block_->data() + block_->size_);
  block_->size_ = needed;
  body_left_ -= bytes.size();
}

MessagePtr MessageBuilder::finish() {
  STOAT_ASSERT(block_ != nullptr && body_left_ == 0, body_left_);
  const bool whole = block_->index();
  STOAT_ASSERT(whole, block_->size_);
  return MessagePtr(std::exchange(block_, nullptr));
}

}  // namespace stoat::broker
