#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "wire/properties.hpp"

namespace stoat::broker {

class Message;
using MessagePtr = boost::intrusive_ptr<const Message>;

// A published message: one immutable, reference-counted block of envelope (exchange, routing key,
// flags, time), the property bytes as the publisher sent them, and the body. The stored value is
// the same bytes, so that storing is one copy and loading is one allocation.
//
//   version 1 | flags 1 | exchange length 1 | routing key length 1 | property length 4 |
//   published at, ms since the epoch 8 | body length 8 | exchange | routing key | properties | body
//   (numbers big-endian)
//
// Thread: any; immutable once built, the count is atomic.
class Message {
 public:
  std::string_view exchange() const { return at(kFixedBytes, exchange_bytes_); }
  std::string_view routing_key() const { return at(kFixedBytes + exchange_bytes_, key_bytes_); }
  // Flags and list of the content header, as received.
  std::string_view properties() const {
    return at(kFixedBytes + exchange_bytes_ + key_bytes_, property_bytes_);
  }
  std::string_view body() const {
    return at(kFixedBytes + exchange_bytes_ + key_bytes_ + property_bytes_, body_bytes_);
  }
  bool persistent() const { return persistent_; }
  WallTime published_at() const;
  // The whole block: what the store keeps, and what memory limits count.
  std::string_view stored() const { return {data(), size_}; }

  // A copy of a stored block; nullptr when the bytes are not a whole block of a known version.
  static MessagePtr from_stored(std::string_view bytes);

  static constexpr std::size_t kFixedBytes = 24;

 private:
  friend class MessageBuilder;
  friend void intrusive_ptr_add_ref(const Message* m) {
    m->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const Message* m) {
    if (m->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(m);
  }

  Message() = default;
  static Message* allocate(std::size_t capacity);
  static Message* grow(Message* old, std::size_t capacity);
  static void destroy(const Message* m);
  // Reads the lengths back out of the fixed part; false when they do not add up to size_.
  bool index();

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view at(std::size_t offset, std::size_t length) const {
    return {data() + offset, length};
  }

  mutable std::atomic<std::uint32_t> references_{0};
  std::uint8_t exchange_bytes_ = 0;
  std::uint8_t key_bytes_ = 0;
  bool persistent_ = false;
  std::uint32_t property_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t size_ = 0;      // bytes of the block in use
  std::size_t capacity_ = 0;  // bytes allocated behind this header
};

// Collects one message as its content arrives. The block grows with the bytes that came, never with
// what the content header announced.
class MessageBuilder {
 public:
  MessageBuilder() = default;
  MessageBuilder(MessageBuilder&& other) noexcept;
  MessageBuilder& operator=(MessageBuilder&& other) noexcept;
  ~MessageBuilder();

  // Starts a message; drops an unfinished one. The views are copied at once. `expected_now` is how
  // many body bytes have arrived already, so that a message read whole is allocated once.
  void start(std::string_view exchange, std::string_view routing_key, std::string_view properties,
             bool persistent, WallTime published_at, std::uint64_t body_size,
             std::size_t expected_now);
  // REQUIRES: bytes.size() <= body_left().
  void append(std::string_view bytes);
  std::uint64_t body_left() const { return body_left_; }
  // REQUIRES: body_left() == 0.
  MessagePtr finish();

 private:
  Message* block_ = nullptr;
  std::uint64_t body_size_ = 0;
  std::uint64_t body_left_ = 0;
};

}  // namespace stoat::broker
