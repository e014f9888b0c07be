#pragma once

#include <cstdint>

#include "wire/method_types.hpp"

// Class access of AMQP 0-8: old clients still ask for a ticket, and are given one.

namespace stoat::wire::access {

inline constexpr std::uint16_t kClass = 30;

struct Request {
  static constexpr MethodId kId{kClass, 10};
  ShortString realm;
  bool exclusive = false;
  bool passive = true;
  bool active = true;
  bool write = true;
  bool read = true;
};
struct RequestOk {
  static constexpr MethodId kId{kClass, 11};
  std::uint16_t ticket = 1;
};

}  // namespace stoat::wire::access
