#pragma once

#include <cstdint>

#include "wire/method_types.hpp"

// Class channel, specification 1.5.

namespace stoat::wire::channel {

inline constexpr std::uint16_t kClass = 20;

struct Open {
  static constexpr MethodId kId{kClass, 10};
  ShortString reserved_1;
};
struct OpenOk {
  static constexpr MethodId kId{kClass, 11};
  LongString reserved_1;
};
struct Flow {
  static constexpr MethodId kId{kClass, 20};
  bool active = false;
};
struct FlowOk {
  static constexpr MethodId kId{kClass, 21};
  bool active = false;
};
struct Close {
  static constexpr MethodId kId{kClass, 40};
  std::uint16_t reply_code = 0;
  ShortString reply_text;
  std::uint16_t class_id = 0;
  std::uint16_t method_id = 0;
};
struct CloseOk {
  static constexpr MethodId kId{kClass, 41};
};

}  // namespace stoat::wire::channel
