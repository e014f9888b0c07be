#pragma once

#include "wire/method_types.hpp"

// Class tx, specification 1.9.

namespace stoat::wire::tx {

inline constexpr std::uint16_t kClass = 90;

struct Select {
  static constexpr MethodId kId{kClass, 10};
};
struct SelectOk {
  static constexpr MethodId kId{kClass, 11};
};
struct Commit {
  static constexpr MethodId kId{kClass, 20};
};
struct CommitOk {
  static constexpr MethodId kId{kClass, 21};
};
struct Rollback {
  static constexpr MethodId kId{kClass, 30};
};
struct RollbackOk {
  static constexpr MethodId kId{kClass, 31};
};

}  // namespace stoat::wire::tx
