#pragma once

#include <cstdint>

#include "wire/field_value.hpp"
#include "wire/method_types.hpp"

// Class exchange, specification 1.6, with RabbitMQ's bind and unbind (unbind-ok is 51).

namespace stoat::wire::exchange {

inline constexpr std::uint16_t kClass = 40;

struct Declare {
  static constexpr MethodId kId{kClass, 10};
  std::uint16_t reserved_1 = 0;
  ShortString exchange;
  ShortString type;
  bool passive = false;
  bool durable = false;
  bool auto_delete = false;
  bool internal = false;
  bool no_wait = false;
  Table arguments;
};
struct DeclareOk {
  static constexpr MethodId kId{kClass, 11};
};
struct Delete {
  static constexpr MethodId kId{kClass, 20};
  std::uint16_t reserved_1 = 0;
  ShortString exchange;
  bool if_unused = false;
  bool no_wait = false;
};
struct DeleteOk {
  static constexpr MethodId kId{kClass, 21};
};
struct Bind {
  static constexpr MethodId kId{kClass, 30};
  std::uint16_t reserved_1 = 0;
  ShortString destination;
  ShortString source;
  ShortString routing_key;
  bool no_wait = false;
  Table arguments;
};
struct BindOk {
  static constexpr MethodId kId{kClass, 31};
};
struct Unbind {
  static constexpr MethodId kId{kClass, 40};
  std::uint16_t reserved_1 = 0;
  ShortString destination;
  ShortString source;
  ShortString routing_key;
  bool no_wait = false;
  Table arguments;
};
struct UnbindOk {
  static constexpr MethodId kId{kClass, 51};
};

}  // namespace stoat::wire::exchange
