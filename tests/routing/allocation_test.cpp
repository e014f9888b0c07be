// Once its buffers have grown, routing allocates nothing: counted by this program's own operator
// new.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/routing/topology.hpp"

namespace {

std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}

namespace stoat::routing {
namespace {

using testing::Topology;

TEST(RouteAllocations, NoneOnceWarm) {
  Topology t;
  t.declare("topic", ExchangeType::topic);
  t.declare("fanout", ExchangeType::fanout);
  t.declare("direct", ExchangeType::direct, "fanout");
  t.table.bind_exchange("topic", "direct", "#", {});
  for (int i = 0; i < 100; ++i) {
    const std::string name = "a.queue.of.a.rather.long.name." + std::to_string(i);
    t.bind("topic", name, "#.name." + std::to_string(i % 10) + ".*");
    t.bind("fanout", name);
    t.bind("direct", name, name);
  }
  const std::string key = "a.queue.of.a.rather.long.name.7.x";
  const std::string other = "a.queue.of.a.rather.long.name.8.x";
  const std::string_view extra_keys[] = {other};
  const Exchange& exchange = *t.table.find("topic");

  std::size_t reached = 0;
  const auto route = [&] {
    reached = t.table.route(exchange, {key, nullptr}, extra_keys, t.scratch).size();
  };
  route();
  EXPECT_EQ(reached, 100u);
  const std::size_t before = allocations;
  ASSERT_GT(before, 0u) << "the count does not count";
  for (int i = 0; i < 100; ++i) route();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace stoat::routing
