#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/routing/topic_reference.hpp"
#include "tests/routing/topology.hpp"
#include "tests/support/seed.hpp"

namespace stoat::routing {
namespace {

using testing::Names;
using testing::Topology;
using wire::Table;

class TopicExchangeTest : public ::testing::Test {
 protected:
  TopicExchangeTest() { t.declare("x", ExchangeType::topic); }
  Topology t;
};

TEST_F(TopicExchangeTest, HashTakesAnyNumberOfWordsAndStarExactlyOne) {
  t.bind("x", "qa", "a.*.c.#");
  t.bind("x", "qb", "a.*");
  t.bind("x", "qc", "#.z");
  EXPECT_EQ(t.route("x", "a.b.c"), (Names{"qa"}));
  EXPECT_EQ(t.route("x", "a.b.c.d"), (Names{"qa"}));
  EXPECT_EQ(t.route("x", "a.b"), (Names{"qb"}));
  EXPECT_EQ(t.route("x", "a"), (Names{}));
  EXPECT_EQ(t.route("x", "z"), (Names{"qc"}));
  EXPECT_EQ(t.route("x", "x.y.z"), (Names{"qc"}));
}

struct MatchCase {
  const char* binding_key;
  const char* routing_key;
  bool matches;
};

TEST(TopicMatch, Cases) {
  constexpr MatchCase kCases[] = {
      {"", "", true},           {"", "a", false},
      {"", ".", false},         {"#", "", true},  // the empty key has no words
      {"*", "", false},         {"#.#", "", true},
      {"#.*", "", false},       {"#", "a", true},
      {"#", "a.b.c", true},     {"*", "a", true},
      {"*", "a.b", false},      {"*.*", "a.b", true},
      {"*.*", "a", false},      {"*.*", ".", true},  // two empty words
      {"*", ".", false},        {".", ".", true},
      {"a.", "a.", true},       {"a.", "a", false},
      {"a", "a.", false},       {"a.*", "a.", true},
      {"a..b", "a..b", true},   {"a.*.b", "a..b", true},
      {"a.b", "a..b", false},   {"a.#.b", "a..b", true},
      {"a.#.b", "a.b", true},   {"a.#.b", "a.x.y.b", true},
      {"a.#.b", "a", false},    {"a.#", "a", true},
      {"#.a", "a", true},       {"#.a.#", "a", true},
      {"#.a.#", "x.a.y", true}, {"#.a.#", "x.b.y", false},
      {"#.*", "a", true},       {"*.#", "a", true},
      {"*.#.*", "a", false},    {"*.#.*", "a.b", true},
      {"#.*.#", "a.b.c", true}, {"#.*.*.#", "a", false},
      {"#.a.#.a", "a", false},  {"#.a.#.a", "a.a", true},
      {"a#", "a#", true},  // a wildcard is a whole word
      {"a#", "ab", false},      {"a*", "ab", false},
      {"**", "a", false},       {"##", "a", false},
      {"#", "#", true},         {"*", "#", true},
      {"a", "*", false},  // no wildcards on the message's side
      {"a", "#", false},        {"*.b", "#.b", true},
      {"A", "a", false},        {"\xc3\xa9.*", "\xc3\xa9.x", true},
  };
  for (const auto& [binding_key, routing_key, matches] : kCases) {
    SCOPED_TRACE(::testing::Message() << '\'' << binding_key << "' and '" << routing_key << '\'');
    Topology t;
    t.declare("x", ExchangeType::topic);
    t.bind("x", "q", binding_key);
    EXPECT_EQ(t.route("x", routing_key), matches ? Names{"q"} : Names{});
    EXPECT_EQ(testing::topic_matches(binding_key, routing_key), matches) << "the reference";
  }
}

TEST_F(TopicExchangeTest, KeysWithTheSameMeaningAreDifferentBindings) {
  EXPECT_TRUE(t.bind("x", "q", "#.*"));
  EXPECT_TRUE(t.bind("x", "q", "*.#"));
  EXPECT_FALSE(t.bind("x", "q", "#.*"));
  EXPECT_EQ(t.route("x", "a"), (Names{"q"}));
  EXPECT_TRUE(t.unbind("x", "q", "#.*"));
  EXPECT_EQ(t.route("x", "a"), (Names{"q"}));
  EXPECT_FALSE(t.unbind("x", "q", "#.*"));
  EXPECT_TRUE(t.unbind("x", "q", "*.#"));
  EXPECT_EQ(t.route("x", "a"), (Names{}));
}

TEST_F(TopicExchangeTest, UnbindLeavesLongerAndShorterKeys) {
  for (const char* key : {"a", "a.b", "a.b.c", "a.#", "a.*", "#"}) t.bind("x", key, key);
  t.unbind("x", "a.b", "a.b");
  EXPECT_EQ(t.route("x", "a.b.c"), (Names{"#", "a.#", "a.b.c"}));
  EXPECT_EQ(t.route("x", "a.b"), (Names{"#", "a.#", "a.*"}));
  t.unbind("x", "a.b.c", "a.b.c");
  t.unbind("x", "a.#", "a.#");
  EXPECT_EQ(t.route("x", "a.b.c"), (Names{"#"}));
  EXPECT_EQ(t.route("x", "a"), (Names{"#", "a"}));
  // What was pruned grows again.
  t.bind("x", "a.b.c", "a.b.c");
  EXPECT_EQ(t.route("x", "a.b.c"), (Names{"#", "a.b.c"}));
}

std::string random_key(std::mt19937_64& random, std::initializer_list<const char*> words) {
  std::string key;
  const std::size_t length = random() % 7;
  for (std::size_t i = 0; i < length; ++i) {
    if (i > 0) key += '.';
    key += words.begin()[random() % words.size()];
  }
  return key;
}

TEST(TopicMatch, AgreesWithTheReferenceOnRandomKeys) {
  const std::uint64_t seed = stoat::testing::test_seed();
  SCOPED_TRACE(stoat::testing::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Topology t;
    t.declare("x", ExchangeType::topic);
    std::vector<std::string> binding_keys;
    for (int i = 0; i < 12; ++i) {
      binding_keys.push_back(random_key(random, {"*", "#", "#", "a", "b", ""}));
      t.bind("x", "q" + std::to_string(i), binding_keys.back());
    }
    for (int publish = 0; publish < 20; ++publish) {
      const std::string key = random_key(random, {"a", "b", "c", "", "#"});
      Names expected;
      for (std::size_t i = 0; i < binding_keys.size(); ++i) {
        const std::string queue = "q" + std::to_string(i);
        if (testing::topic_matches(binding_keys[i], key)) expected.push_back(queue);
      }
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(t.route("x", key), expected)
          << "key '" << key << "', bindings " << ::testing::PrintToString(binding_keys);
    }
  }
}

std::string repeated(std::string_view part, std::size_t times, std::string_view last) {
  std::string key;
  for (std::size_t i = 0; i < times; ++i) key += part;
  return key += last;
}

// A backtracking matcher would need more steps than there is time for each of these: the number of
// ways to share 120 words among 40 `#`.
TEST_F(TopicExchangeTest, PatternsMadeToBacktrackEnd) {
  t.bind("x", "hashes", repeated("#.", 120, "b"));
  t.bind("x", "hash-a", repeated("#.a.", 60, "b"));
  t.bind("x", "hash-star", repeated("#.*.", 60, "b"));
  t.bind("x", "hash-star-a", repeated("#.*.a.", 40, "b"));
  t.bind("x", "a-hash", repeated("a.#.", 60, "#"));
  EXPECT_EQ(t.route("x", repeated("a.", 125, "a")), (Names{"a-hash"}));
  EXPECT_EQ(t.route("x", repeated("a.", 125, "b")),
            (Names{"a-hash", "hash-a", "hash-star", "hash-star-a", "hashes"}));
  EXPECT_EQ(t.route("x", repeated("a.", 59, "b")), (Names{"hashes"}));
}

TEST_F(TopicExchangeTest, ManyLongPatternsOfWildcardsEnd) {
  // All the ways to put `#` before some of sixteen words, in one trie.
  for (unsigned bits = 0; bits < 1024; ++bits) {
    std::string key;
    for (unsigned bit = 0; bit < 10; ++bit) key += bits >> bit & 1 ? "#.a." : "a.";
    t.bind("x", "q", key + "#.z");
  }
  EXPECT_EQ(t.route("x", repeated("a.", 120, "a")), (Names{}));
  EXPECT_EQ(t.route("x", repeated("a.", 120, "z")), (Names{"q"}));
}

TEST_F(TopicExchangeTest, KeepsItsBindingsThroughGrowthAndShrinking) {
  constexpr int kBindings = 3000;
  const auto key = [](int i) { return "load.*." + std::to_string(i) + ".#"; };
  for (int i = 0; i < kBindings; ++i) t.bind("x", "q" + std::to_string(i), key(i));
  for (int i = 0; i < kBindings; i += 2) t.unbind("x", "q" + std::to_string(i), key(i));
  for (int i = 0; i < kBindings; ++i) {
    const Names expected = i % 2 == 0 ? Names{} : Names{"q" + std::to_string(i)};
    ASSERT_EQ(t.route("x", "load.k." + std::to_string(i) + ".x.y"), expected);
  }
  EXPECT_EQ(t.route("x", "load.1"), (Names{}));
}

}  // namespace
}  // namespace stoat::routing
