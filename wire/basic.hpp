#pragma once

#include <cstdint>

#include "wire/field_value.hpp"
#include "wire/method_types.hpp"

// Class basic, specification 1.8, with RabbitMQ's nack.

namespace stoat::wire::basic {

inline constexpr std::uint16_t kClass = 60;

struct Qos {
  static constexpr MethodId kId{kClass, 10};
  std::uint32_t prefetch_size = 0;
  std::uint16_t prefetch_count = 0;
  bool global = false;
};
struct QosOk {
  static constexpr MethodId kId{kClass, 11};
};
struct Consume {
  static constexpr MethodId kId{kClass, 20};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  ShortString consumer_tag;
  bool no_local = false;
  bool no_ack = false;
  bool exclusive = false;
  bool no_wait = false;
  Table arguments;
};
struct ConsumeOk {
  static constexpr MethodId kId{kClass, 21};
  ShortString consumer_tag;
};
struct Cancel {
  static constexpr MethodId kId{kClass, 30};
  ShortString consumer_tag;
  bool no_wait = false;
};
struct CancelOk {
  static constexpr MethodId kId{kClass, 31};
  ShortString consumer_tag;
};
struct Publish {
  static constexpr MethodId kId{kClass, 40};
  std::uint16_t reserved_1 = 0;
  ShortString exchange;
  ShortString routing_key;
  bool mandatory = false;
  bool immediate = false;
};
struct Return {
  static constexpr MethodId kId{kClass, 50};
  std::uint16_t reply_code = 0;
  ShortString reply_text;
  ShortString exchange;
  ShortString routing_key;
};
struct Deliver {
  static constexpr MethodId kId{kClass, 60};
  ShortString consumer_tag;
  std::uint64_t delivery_tag = 0;
  bool redelivered = false;
  ShortString exchange;
  ShortString routing_key;
};
struct Get {
  static constexpr MethodId kId{kClass, 70};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  bool no_ack = false;
};
struct GetOk {
  static constexpr MethodId kId{kClass, 71};
  std::uint64_t delivery_tag = 0;
  bool redelivered = false;
  ShortString exchange;
  ShortString routing_key;
  std::uint32_t message_count = 0;
};
struct GetEmpty {
  static constexpr MethodId kId{kClass, 72};
  ShortString reserved_1;
};
struct Ack {
  static constexpr MethodId kId{kClass, 80};
  std::uint64_t delivery_tag = 0;
  bool multiple = false;
};
struct Reject {
  static constexpr MethodId kId{kClass, 90};
  std::uint64_t delivery_tag = 0;
  bool requeue = false;
};
struct RecoverAsync {
  static constexpr MethodId kId{kClass, 100};
  bool requeue = false;
};
struct Recover {
  static constexpr MethodId kId{kClass, 110};
  bool requeue = false;
};
struct RecoverOk {
  static constexpr MethodId kId{kClass, 111};
};
struct Nack {
  static constexpr MethodId kId{kClass, 120};
  std::uint64_t delivery_tag = 0;
  bool multiple = false;
  bool requeue = false;
};

}  // namespace stoat::wire::basic
