#pragma once

#include <cstdlib>

namespace stoat::testing {

// True under the tests labelled long, which set STOAT_LONG_RUN: what is sampled otherwise is then
// gone through one by one.
inline bool is_long_run() {
  return std::getenv("STOAT_LONG_RUN") != nullptr;
}

}  // namespace stoat::testing
