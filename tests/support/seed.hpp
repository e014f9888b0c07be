#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace stoat::testing {

// The seed of a randomised test: a new one each run, or the value of STOAT_TEST_SEED, to repeat a
// run that failed. Print it with SCOPED_TRACE(seed_text(seed)).
inline std::uint64_t test_seed() {
  if (const char* given = std::getenv("STOAT_TEST_SEED")) return std::strtoull(given, nullptr, 10);
  return std::random_device{}();
}

inline std::string seed_text(std::uint64_t seed) {
  return "repeat with STOAT_TEST_SEED=" + std::to_string(seed);
}

}  // namespace stoat::testing
