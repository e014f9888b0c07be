// What routing allocates, counted by this program's own operator new: nothing per message once its
// buffers have grown, and nothing that stays when bindings come and go.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "tests/routing/topology.hpp"

namespace {

std::size_t allocations = 0;
std::size_t live_bytes = 0;

void* counted(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  ++allocations;
  live_bytes += malloc_usable_size(block);
  return block;
}

[[gnu::noinline]] void release(void* block) {
  if (block != nullptr) live_bytes -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}
void operator delete(void* block) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  release(block);
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

// Queues and bindings that nobody has seen before come and go, as with clients that subscribe for a
// moment under a name of their own.
TEST(RoutingMemory, DoesNotGrowWithChangingBindings) {
  constexpr int kRounds = 20;
  constexpr int kBindingsPerRound = 500;
  for (const ExchangeType type :
       {ExchangeType::direct, ExchangeType::fanout, ExchangeType::topic, ExchangeType::headers}) {
    SCOPED_TRACE(name_of(type));
    RoutingTable table;
    table.add_exchange({.name = "x", .type = type, .alternate_exchange = ""});
    std::uint64_t id = 0;
    const auto round = [&] {
      const std::uint64_t first = id + 1;
      for (int i = 0; i < kBindingsPerRound; ++i) {
        const std::string name = std::to_string(++id);
        table.add_queue(name, QueueId(id));
        table.bind_queue("x", QueueId(id), "#." + name + ".*.#." + name, {{name, name}});
      }
      for (std::uint64_t queue = first; queue <= id; ++queue) {
        table.remove_queue(std::to_string(queue), QueueId(queue));
      }
    };
    round();
    const std::size_t before = live_bytes;
    for (int i = 0; i < kRounds; ++i) round();
    EXPECT_LT(live_bytes, 2 * before);
  }
}

}  // namespace
}  // namespace stoat::routing
