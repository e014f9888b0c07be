#include <gtest/gtest.h>

#include "tests/routing/topology.hpp"

namespace stoat::routing {
namespace {

using testing::Names;
using testing::Topology;
using wire::Table;

TEST(DirectExchange, MatchesTheWholeKeyByteForByte) {
  Topology t;
  t.declare("x", ExchangeType::direct);
  t.bind("x", "a", "red");
  t.bind("x", "b", "red");
  t.bind("x", "c", "Red");
  t.bind("x", "d", "red.*");
  t.bind("x", "e", "");
  t.bind("x", "f", std::string_view("re\0d", 4));
  EXPECT_EQ(t.route("x", "red"), (Names{"a", "b"}));
  EXPECT_EQ(t.route("x", "Red"), (Names{"c"}));
  EXPECT_EQ(t.route("x", "red.*"), (Names{"d"}));
  EXPECT_EQ(t.route("x", "red.x"), (Names{}));
  EXPECT_EQ(t.route("x", ""), (Names{"e"}));
  EXPECT_EQ(t.route("x", std::string_view("re\0d", 4)), (Names{"f"}));
  EXPECT_EQ(t.route("x", "re"), (Names{}));
}

TEST(DirectExchange, BindingsThatDifferInArgumentsAreTwoButDeliverOnce) {
  Topology t;
  t.declare("x", ExchangeType::direct);
  EXPECT_TRUE(t.bind("x", "q", "k"));
  EXPECT_TRUE(t.bind("x", "q", "k", Table{{"a", std::int32_t{1}}}));
  EXPECT_FALSE(t.bind("x", "q", "k", Table{{"a", std::int64_t{1}}})) << "equal by value";
  EXPECT_TRUE(t.bind("x", "q", "k", Table{{"a", "1"}}));
  EXPECT_TRUE(t.bind("x", "q", "k", Table{{"a", wire::Void{}}})) << "void is not absent";
  EXPECT_EQ(t.route("x", "k"), (Names{"q"}));

  EXPECT_FALSE(t.unbind("x", "q", "k", Table{{"a", std::int32_t{2}}}));
  EXPECT_FALSE(t.unbind("x", "q", "other"));
  EXPECT_TRUE(t.unbind("x", "q", "k", Table{{"a", std::uint8_t{1}}}));
  EXPECT_FALSE(t.unbind("x", "q", "k", Table{{"a", std::int32_t{1}}})) << "gone";
  EXPECT_TRUE(t.unbind("x", "q", "k"));
  EXPECT_TRUE(t.unbind("x", "q", "k", Table{{"a", wire::Void{}}}));
  EXPECT_EQ(t.route("x", "k"), (Names{"q"})) << "the binding with {a: \"1\"} is left";
  EXPECT_TRUE(t.unbind("x", "q", "k", Table{{"a", "1"}}));
  EXPECT_EQ(t.route("x", "k"), (Names{}));
}

TEST(DirectExchange, ArgumentsAreTheSameInAnyOrder) {
  Topology t;
  t.declare("x", ExchangeType::direct);
  const Table nested{{"k", "v"}, {"n", std::int8_t{7}}};
  const Table nested_reordered{{"n", std::int64_t{7}}, {"k", "v"}};
  EXPECT_TRUE(t.bind("x", "q", "k", Table{{"a", 1}, {"t", nested}}));
  EXPECT_FALSE(t.bind("x", "q", "k", Table{{"t", nested_reordered}, {"a", std::int16_t{1}}}));
  EXPECT_TRUE(t.unbind("x", "q", "k", Table{{"t", nested_reordered}, {"a", std::int16_t{1}}}));
}

TEST(FanoutExchange, MatchesEveryBindingOncePerQueue) {
  Topology t;
  t.declare("x", ExchangeType::fanout);
  t.bind("x", "a", "k");
  t.bind("x", "b", "");
  EXPECT_TRUE(t.bind("x", "b", "other")) << "the key identifies a binding though nothing reads it";
  EXPECT_EQ(t.route("x", "whatever"), (Names{"a", "b"}));
  EXPECT_TRUE(t.unbind("x", "b", ""));
  EXPECT_EQ(t.route("x", "whatever"), (Names{"a", "b"}));
  EXPECT_TRUE(t.unbind("x", "b", "other"));
  EXPECT_EQ(t.route("x", "whatever"), (Names{"a"}));
}

TEST(FanoutExchange, ReachesThousandsOfQueuesOnceEach) {
  constexpr int kQueues = 5000;
  Topology t;
  t.declare("x", ExchangeType::fanout);
  for (int i = 0; i < kQueues; ++i) {
    t.bind("x", "q" + std::to_string(i), "1");
    t.bind("x", "q" + std::to_string(i), "2");
  }
  const Names reached = t.route("x");
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kQueues));
  EXPECT_EQ(std::adjacent_find(reached.begin(), reached.end()), reached.end());
}

TEST(DefaultExchange, RoutesToTheQueueOfThatName) {
  Topology t;
  ASSERT_TRUE(t.table.has_exchange(""));
  t.declare_queue("q");
  t.declare_queue("Q");
  EXPECT_EQ(t.route("", "q"), (Names{"q"}));
  EXPECT_EQ(t.route("", "Q"), (Names{"Q"}));
  EXPECT_EQ(t.route("", ""), (Names{}));
  EXPECT_EQ(t.delete_queue("q"), (Names{})) << "the default exchange is never unused";
  EXPECT_EQ(t.route("", "q"), (Names{}));
}

TEST(DefaultExchange, KnowsAQueueDeclaredAgainAsANewOne) {
  Topology t;
  const QueueId first = t.declare_queue("q");
  t.delete_queue("q");
  const QueueId second = t.declare_queue("q");
  ASSERT_NE(first, second);
  const auto reached = t.table.route(*t.table.find(""), {"q", nullptr}, {}, t.scratch);
  ASSERT_EQ(reached.size(), 1u);
  EXPECT_EQ(reached[0], second);
}

TEST(ExchangeType, NamesGoBothWays) {
  for (const auto type :
       {ExchangeType::direct, ExchangeType::fanout, ExchangeType::topic, ExchangeType::headers}) {
    ExchangeType parsed =
        type == ExchangeType::direct ? ExchangeType::fanout : ExchangeType::direct;
    EXPECT_TRUE(parse_exchange_type(name_of(type), parsed));
    EXPECT_EQ(parsed, type);
  }
  for (const std::string_view unknown : {"", "Direct", "topic ", "x-delayed-message"}) {
    ExchangeType untouched = ExchangeType::headers;
    EXPECT_FALSE(parse_exchange_type(unknown, untouched)) << unknown;
    EXPECT_EQ(untouched, ExchangeType::headers);
  }
}

}  // namespace
}  // namespace stoat::routing
