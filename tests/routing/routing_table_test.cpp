#include <gtest/gtest.h>

#include "routing/exchange.hpp"
#include "tests/routing/topology.hpp"

namespace stoat::routing {
namespace {

using testing::Names;
using testing::Topology;
using wire::Table;

TEST(ExchangeBindings, OverlappingPathsAndACycleDeliverOncePerQueue) {
  Topology t;
  t.declare("x", ExchangeType::topic);
  t.declare("a", ExchangeType::fanout);
  t.declare("b", ExchangeType::topic);
  t.table.bind_exchange("x", "a", "#", {});
  t.table.bind_exchange("x", "b", "k.*", {});
  t.bind("a", "q");
  t.bind("b", "q", "#");
  t.bind("x", "q", "k.*");
  t.bind("x", "q", "*.k");
  t.table.bind_exchange("b", "x", "#", {});
  EXPECT_EQ(t.route("x", "k.k"), (Names{"q"}));
  EXPECT_EQ(t.route("b", "k.k"), (Names{"q"}));
}

TEST(ExchangeBindings, EachExchangeMatchesByItsOwnType) {
  Topology t;
  t.declare("in", ExchangeType::direct);
  t.declare("by-topic", ExchangeType::topic);
  t.declare("by-headers", ExchangeType::headers);
  t.table.bind_exchange("in", "by-topic", "a.b", {});
  t.table.bind_exchange("in", "by-headers", "a.b", {});
  t.bind("by-topic", "t", "a.*");
  t.bind("by-topic", "no", "b.*");
  t.bind("by-headers", "h", "", Table{{"n", 1}});
  EXPECT_EQ(t.route_headers("in", Table{{"n", 1}}, "a.b"), (Names{"h", "t"}));
  EXPECT_EQ(t.route_headers("in", Table{{"n", 2}}, "a.b"), (Names{"t"}));
  EXPECT_EQ(t.route_headers("in", Table{{"n", 1}}, "a.c"), (Names{}));
}

TEST(ExchangeBindings, CyclesOfEveryLengthEnd) {
  for (const int length : {1, 2, 3, 17}) {
    SCOPED_TRACE(length);
    Topology t;
    for (int i = 0; i < length; ++i) {
      t.declare("x" + std::to_string(i), ExchangeType::fanout);
      t.bind("x" + std::to_string(i), "q" + std::to_string(i));
    }
    for (int i = 0; i < length; ++i) {
      t.table.bind_exchange("x" + std::to_string(i), "x" + std::to_string((i + 1) % length), "",
                            {});
    }
    for (int i = 0; i < length; ++i) {
      EXPECT_EQ(t.route("x" + std::to_string(i)).size(), static_cast<std::size_t>(length));
    }
  }
}

TEST(ExchangeBindings, BindingToItselfGoesWithTheExchange) {
  Topology t;
  t.declare("x", ExchangeType::fanout);
  EXPECT_TRUE(t.table.bind_exchange("x", "x", "", {}));
  t.bind("x", "q");
  EXPECT_EQ(t.route("x"), (Names{"q"}));
  EXPECT_EQ(t.delete_exchange("x"), (Names{}));
  t.declare("x", ExchangeType::fanout);
  EXPECT_FALSE(t.table.is_source_in_use("x"));
  EXPECT_EQ(t.route("x"), (Names{}));
}

TEST(ExchangeBindings, IdentityAndUnbindAreAsForQueues) {
  Topology t;
  t.declare("x", ExchangeType::direct);
  t.declare("y", ExchangeType::fanout);
  t.bind("y", "q");
  EXPECT_TRUE(t.table.bind_exchange("x", "y", "k", {}));
  EXPECT_FALSE(t.table.bind_exchange("x", "y", "k", {}));
  EXPECT_TRUE(t.table.bind_exchange("x", "y", "k", Table{{"a", 1}}));
  EXPECT_TRUE(t.table.unbind_exchange("x", "y", "k", {}));
  EXPECT_EQ(t.route("x", "k"), (Names{"q"}));
  EXPECT_FALSE(t.table.unbind_exchange("x", "y", "other", {}));
  EXPECT_TRUE(t.table.unbind_exchange("x", "y", "k", Table{{"a", std::int64_t{1}}}));
  EXPECT_EQ(t.route("x", "k"), (Names{}));
}

TEST(ExchangeBindings, DeletedDestinationLeavesNoRouteToItsNamesake) {
  Topology t;
  t.declare("src", ExchangeType::fanout);
  t.declare("dst", ExchangeType::fanout);
  t.table.bind_exchange("src", "dst", "", {});
  t.bind("dst", "q");
  EXPECT_EQ(t.route("src"), (Names{"q"}));
  EXPECT_EQ(t.delete_exchange("dst"), (Names{"src"}));
  EXPECT_EQ(t.route("src"), (Names{}));
  t.declare("dst", ExchangeType::fanout);
  t.bind("dst", "q");
  EXPECT_EQ(t.route("src"), (Names{}));
  EXPECT_TRUE(t.table.bind_exchange("src", "dst", "", {}));
  EXPECT_EQ(t.route("src"), (Names{"q"}));
}

TEST(ExchangeBindings, DeletedSourceLeavesNoBindingToItsNamesake) {
  Topology t;
  t.declare("src", ExchangeType::fanout);
  t.bind("src", "q");
  EXPECT_EQ(t.delete_exchange("src"), (Names{}));
  t.declare("src", ExchangeType::fanout);
  EXPECT_EQ(t.route("src"), (Names{}));
  EXPECT_TRUE(t.bind("src", "q")) << "the old binding is not an equal one";
}

TEST(AlternateExchange, TakesWhatMatchesNothing) {
  Topology t;
  t.declare("ae", ExchangeType::fanout);
  t.declare("x", ExchangeType::direct, "ae");
  t.bind("ae", "rest");
  t.bind("x", "q", "k");
  EXPECT_EQ(t.route("x", "k"), (Names{"q"}));
  EXPECT_EQ(t.route("x", "other"), (Names{"rest"}));
  EXPECT_EQ(t.route("x", "other", {"k"}), (Names{"q"})) << "one of the keys matched";
}

TEST(AlternateExchange, ChainsUntilSomethingMatches) {
  Topology t;
  t.declare("third", ExchangeType::direct);
  t.declare("second", ExchangeType::direct, "third");
  t.declare("first", ExchangeType::direct, "second");
  t.bind("first", "q1", "1");
  t.bind("second", "q2", "2");
  t.bind("third", "q3", "3");
  EXPECT_EQ(t.route("first", "1"), (Names{"q1"}));
  EXPECT_EQ(t.route("first", "2"), (Names{"q2"}));
  EXPECT_EQ(t.route("first", "3"), (Names{"q3"}));
  EXPECT_EQ(t.route("first", "4"), (Names{}));
}

TEST(AlternateExchange, CyclesEnd) {
  Topology t;
  t.declare("self", ExchangeType::direct, "self");
  t.declare("a", ExchangeType::direct, "b");
  t.declare("b", ExchangeType::direct, "a");
  t.bind("b", "q", "k");
  EXPECT_EQ(t.route("self", "k"), (Names{}));
  EXPECT_EQ(t.route("a", "other"), (Names{}));
  EXPECT_EQ(t.route("a", "k"), (Names{"q"}));
}

TEST(AlternateExchange, IgnoredWhileItDoesNotExist) {
  Topology t;
  t.declare("x", ExchangeType::direct, "ae");
  EXPECT_EQ(t.route("x", "k"), (Names{}));
  t.declare("ae", ExchangeType::fanout);
  t.bind("ae", "q");
  EXPECT_EQ(t.route("x", "k"), (Names{"q"}));
  EXPECT_EQ(t.delete_exchange("ae"), (Names{}));
  EXPECT_EQ(t.route("x", "k"), (Names{}));
}

// A binding to an exchange counts as a match, even if nothing is bound there.
TEST(AlternateExchange, GoesByTheExchangesOwnBindings) {
  Topology t;
  t.declare("ae", ExchangeType::fanout);
  t.bind("ae", "rest");
  t.declare("x", ExchangeType::fanout, "ae");
  t.declare("empty", ExchangeType::fanout);
  t.table.bind_exchange("x", "empty", "", {});
  EXPECT_EQ(t.route("x"), (Names{}));
}

TEST(AlternateExchange, AppliesToExchangesReachedByBindings) {
  Topology t;
  t.declare("ae", ExchangeType::fanout);
  t.bind("ae", "rest");
  t.declare("x", ExchangeType::fanout);
  t.declare("y", ExchangeType::direct, "ae");
  t.table.bind_exchange("x", "y", "", {});
  t.bind("x", "q");
  t.bind("y", "k", "k");
  EXPECT_EQ(t.route("x", "k"), (Names{"k", "q"}));
  EXPECT_EQ(t.route("x", "other"), (Names{"q", "rest"}));
}

TEST(ExtraKeys, AddTheirQueuesToTheRoutingKeys) {
  Topology t;
  t.declare("direct", ExchangeType::direct);
  t.declare("topic", ExchangeType::topic);
  for (const char* key : {"a", "b", "c"}) {
    t.bind("direct", key, key);
    t.bind("topic", key, std::string(key) + ".#");
  }
  EXPECT_EQ(t.route("direct", "a", {"b"}), (Names{"a", "b"}));
  EXPECT_EQ(t.route("direct", "none", {"b", "b", "c"}), (Names{"b", "c"}));
  EXPECT_EQ(t.route("direct", "a", {"a"}), (Names{"a"}));
  EXPECT_EQ(t.route("topic", "a.x", {"b.y", "a"}), (Names{"a", "b"}));
  EXPECT_EQ(t.route("", "a", {"b", "none"}), (Names{"a", "b"}));
}

TEST(ExtraKeys, GoAlongToBoundExchanges) {
  Topology t;
  t.declare("x", ExchangeType::fanout);
  t.declare("y", ExchangeType::direct);
  t.table.bind_exchange("x", "y", "", {});
  t.bind("y", "b", "b");
  EXPECT_EQ(t.route("x", "a", {"b"}), (Names{"b"}));
  EXPECT_EQ(t.route("x", "a"), (Names{}));
}

TEST(RoutingTable, DeletedQueueTakesItsBindingsAndTellsWhoIsUnused) {
  Topology t;
  for (const char* name : {"one", "two", "kept"}) t.declare(name, ExchangeType::topic);
  t.bind("one", "q", "a");
  t.bind("one", "q", "b");
  t.bind("two", "q", "#");
  t.bind("kept", "q", "#");
  t.bind("kept", "other", "#");
  EXPECT_EQ(t.delete_queue("q"), (Names{"one", "two"}));
  EXPECT_FALSE(t.table.is_source_in_use("one"));
  EXPECT_TRUE(t.table.is_source_in_use("kept"));
  t.declare_queue("q");
  EXPECT_EQ(t.route("one", "a"), (Names{}));
  EXPECT_EQ(t.route("kept", "a"), (Names{"other"}));
  EXPECT_EQ(t.route("", "q"), (Names{"q"}));
}

TEST(RoutingTable, UseCountsOnlyBindingsFromTheExchange) {
  Topology t;
  t.declare("x", ExchangeType::fanout);
  t.declare("y", ExchangeType::fanout);
  EXPECT_FALSE(t.table.is_source_in_use("x"));
  t.table.bind_exchange("x", "y", "", {});
  EXPECT_TRUE(t.table.is_source_in_use("x"));
  EXPECT_FALSE(t.table.is_source_in_use("y")) << "being a destination is no use";
  t.table.unbind_exchange("x", "y", "", {});
  EXPECT_FALSE(t.table.is_source_in_use("x"));
  EXPECT_FALSE(t.table.is_source_in_use("absent"));
}

TEST(RoutingTable, AbsentThingsAreNotRemoved) {
  Topology t;
  const std::uint64_t before = t.table.generation();
  EXPECT_FALSE(t.table.remove_exchange("absent"));
  t.table.remove_queue("absent", QueueId(99));
  EXPECT_EQ(t.table.find("absent"), nullptr);
  EXPECT_EQ(t.table.generation(), before);
  EXPECT_FALSE(t.table.has_exchange("absent"));
  t.declare("x", ExchangeType::direct);
  t.declare_queue("q");
  const std::uint64_t declared = t.table.generation();
  EXPECT_FALSE(t.table.unbind_queue("absent", t.id_of("q"), "", {}));
  EXPECT_FALSE(t.table.unbind_queue("x", QueueId(99), "", {}));
  EXPECT_FALSE(t.table.unbind_exchange("absent", "x", "", {}));
  EXPECT_FALSE(t.table.unbind_exchange("x", "absent", "", {}));
  EXPECT_EQ(t.table.generation(), declared);
}

TEST(RoutingTable, GenerationRisesWithEveryChangeAndOnlyThen) {
  Topology t;
  std::uint64_t last = t.table.generation();
  const auto rose = [&] {
    return std::exchange(last, t.table.generation()) < t.table.generation();
  };
  t.declare("x", ExchangeType::direct);
  EXPECT_TRUE(rose());
  t.declare_queue("q");
  EXPECT_TRUE(rose());
  t.bind("x", "q", "k");
  EXPECT_TRUE(rose());
  t.bind("x", "q", "k");
  EXPECT_FALSE(rose());
  t.route("x", "k");
  EXPECT_FALSE(rose());
  t.unbind("x", "q", "k");
  EXPECT_TRUE(rose());
  t.unbind("x", "q", "k");
  EXPECT_FALSE(rose());
  t.table.bind_exchange("x", "x", "k", {});
  EXPECT_TRUE(rose());
  t.table.unbind_exchange("x", "x", "k", {});
  EXPECT_TRUE(rose());
  t.delete_queue("q");
  EXPECT_TRUE(rose());
  t.delete_exchange("x");
  EXPECT_TRUE(rose());
}

TEST(RoutingTable, FoundExchangeSaysWhatItIs) {
  Topology t;
  t.declare("x", ExchangeType::headers, "ae");
  const Exchange* exchange = t.table.find("x");
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->name(), "x");
  EXPECT_EQ(exchange->type(), ExchangeType::headers);
  EXPECT_EQ(exchange->alternate_exchange(), "ae");
}

// RouteScratch makes room for every number up to the highest.
TEST(RoutingTable, NumbersOfWhatIsGoneAreUsedAgain) {
  Topology t;
  for (int i = 0; i < 1000; ++i) {
    t.declare_queue("q");
    t.declare("x", ExchangeType::fanout);
    EXPECT_LT(t.table.find("x")->as_destination().target.number, 3u);
    t.delete_queue("q");
    t.delete_exchange("x");
  }
}

TEST(RoutingTable, OneScratchServesManyTables) {
  Topology small;
  Topology large;
  small.declare("x", ExchangeType::topic);
  large.declare("x", ExchangeType::topic);
  small.bind("x", "q", "#");
  for (int i = 0; i < 500; ++i) large.bind("x", "q" + std::to_string(i), "*.#");
  RouteScratch scratch;
  for (int round = 0; round < 3; ++round) {
    for (Topology* t : {&small, &large}) {
      const auto reached = t->table.route(*t->table.find("x"), {"k", nullptr}, {}, scratch);
      EXPECT_EQ(reached.size(), t == &small ? 1u : 500u);
      EXPECT_EQ(scratch.queues().data(), reached.data());
    }
  }
}

}  // namespace
}  // namespace stoat::routing
