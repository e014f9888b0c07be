#pragma once

#include <cstdint>

#include "wire/field_value.hpp"
#include "wire/method_types.hpp"

// Class connection, specification 1.4, with RabbitMQ's blocked, unblocked and update-secret.
// Each struct is a method's arguments in wire order; encoding is derived from the members.

namespace stoat::wire::connection {

inline constexpr std::uint16_t kClass = 10;

struct Start {
  static constexpr MethodId kId{kClass, 10};
  std::uint8_t version_major = 0;
  std::uint8_t version_minor = 9;
  Table server_properties;
  LongString mechanisms;
  LongString locales;
};
struct StartOk {
  static constexpr MethodId kId{kClass, 11};
  Table client_properties;
  ShortString mechanism;
  LongString response;
  ShortString locale;
};
struct Secure {
  static constexpr MethodId kId{kClass, 20};
  LongString challenge;
};
struct SecureOk {
  static constexpr MethodId kId{kClass, 21};
  LongString response;
};
struct Tune {
  static constexpr MethodId kId{kClass, 30};
  std::uint16_t channel_max = 0;
  std::uint32_t frame_max = 0;
  std::uint16_t heartbeat = 0;
};
struct TuneOk {
  static constexpr MethodId kId{kClass, 31};
  std::uint16_t channel_max = 0;
  std::uint32_t frame_max = 0;
  std::uint16_t heartbeat = 0;
};
struct Open {
  static constexpr MethodId kId{kClass, 40};
  ShortString virtual_host;
  ShortString reserved_1;
  bool reserved_2 = false;
};
struct OpenOk {
  static constexpr MethodId kId{kClass, 41};
  ShortString reserved_1;
};
struct Close {
  static constexpr MethodId kId{kClass, 50};
  std::uint16_t reply_code = 0;
  ShortString reply_text;
  std::uint16_t class_id = 0;
  std::uint16_t method_id = 0;
};
struct CloseOk {
  static constexpr MethodId kId{kClass, 51};
};
struct Blocked {
  static constexpr MethodId kId{kClass, 60};
  ShortString reason;
};
struct Unblocked {
  static constexpr MethodId kId{kClass, 61};
};
struct UpdateSecret {
  static constexpr MethodId kId{kClass, 70};
  LongString new_secret;
  ShortString reason;
};
struct UpdateSecretOk {
  static constexpr MethodId kId{kClass, 71};
};

}  // namespace stoat::wire::connection
