#include <gtest/gtest.h>

#include "home_simulation.hpp"
#include "tests/support/seed.hpp"

namespace stoat::testing {
namespace {

TEST(HomeSimulation, KeepsItsPromises) {
  const std::uint64_t seed = test_seed();
  constexpr int kLives = 40;
  for (std::uint64_t life = 0; life < kLives && !::testing::Test::HasFailure(); ++life) {
    SCOPED_TRACE(seed_text(seed + life));
    Simulation(seed + life).run();
  }
}

}  // namespace
}  // namespace stoat::testing
