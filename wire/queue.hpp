#pragma once

#include <cstdint>

#include "wire/field_value.hpp"
#include "wire/method_types.hpp"

// Class queue, specification 1.7.

namespace stoat::wire::queue {

inline constexpr std::uint16_t kClass = 50;

struct Declare {
  static constexpr MethodId kId{kClass, 10};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  bool passive = false;
  bool durable = false;
  bool exclusive = false;
  bool auto_delete = false;
  bool no_wait = false;
  Table arguments;
};
struct DeclareOk {
  static constexpr MethodId kId{kClass, 11};
  ShortString queue;
  std::uint32_t message_count = 0;
  std::uint32_t consumer_count = 0;
};
struct Bind {
  static constexpr MethodId kId{kClass, 20};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  ShortString exchange;
  ShortString routing_key;
  bool no_wait = false;
  Table arguments;
};
struct BindOk {
  static constexpr MethodId kId{kClass, 21};
};
struct Purge {
  static constexpr MethodId kId{kClass, 30};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  bool no_wait = false;
};
struct PurgeOk {
  static constexpr MethodId kId{kClass, 31};
  std::uint32_t message_count = 0;
};
struct Delete {
  static constexpr MethodId kId{kClass, 40};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  bool if_unused = false;
  bool if_empty = false;
  bool no_wait = false;
};
struct DeleteOk {
  static constexpr MethodId kId{kClass, 41};
  std::uint32_t message_count = 0;
};
struct Unbind {
  static constexpr MethodId kId{kClass, 50};
  std::uint16_t reserved_1 = 0;
  ShortString queue;
  ShortString exchange;
  ShortString routing_key;
  Table arguments;
};
struct UnbindOk {
  static constexpr MethodId kId{kClass, 51};
};

}  // namespace stoat::wire::queue
