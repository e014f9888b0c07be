#pragma once

#include "wire/method_types.hpp"

// Class confirm: RabbitMQ's publisher confirms.

namespace stoat::wire::confirm {

inline constexpr std::uint16_t kClass = 85;

struct Select {
  static constexpr MethodId kId{kClass, 10};
  bool no_wait = false;
};
struct SelectOk {
  static constexpr MethodId kId{kClass, 11};
};

}  // namespace stoat::wire::confirm
