#include "broker/permissions.hpp"

#include <gtest/gtest.h>

#include "broker/topology.hpp"

namespace stoat::broker {
namespace {

bool grants(const std::string& pattern, std::string_view name) {
  const Permissions permissions({"u", "/", pattern, "", ""});
  return permissions.may_configure(name);
}

TEST(Permissions, PatternsMatchAsInRabbitMq) {
  struct {
    std::string pattern;
    std::string_view name;
    bool granted;
  } const cases[] = {
      {".*", "anything", true},
      {".*", "", true},
      {"", "", true},
      {"", "a", false},
      {"^$", "", true},
      {"^$", "a", false},
      {"orders", "eu.orders.new", true},  // searched, not anchored
      {"^orders", "eu.orders", false},
      {"^orders$", "orders", true},
      {"^orders$", "orders2", false},
      {"^(amq\\.gen.*|amq\\.default)$", "amq.default", true},
      {"^(amq\\.gen.*|amq\\.default)$", "amq.gen-xyz", true},
      {"^(amq\\.gen.*|amq\\.default)$", "amqXdefault", false},
      {"^(?!secret)", "secret.x", false},
      {"^(?!secret)", "open", true},
      {"\\d{3}", "a123", true},
      {"^b", "a\nb", false},  // a line break does not begin a new name
      {"a$", "a\nb", false},
      {"(", "(", false},  // no regular expression
  };
  for (const auto& c : cases) {
    EXPECT_EQ(grants(c.pattern, c.name), c.granted) << c.pattern << " on '" << c.name << "'";
  }
}

TEST(Permissions, EachOfTheThreeHasItsOwnPattern) {
  const Permissions permissions({"u", "/", "^c", "^w", "^r"});
  EXPECT_TRUE(permissions.may_configure("c"));
  EXPECT_FALSE(permissions.may_configure("w"));
  EXPECT_TRUE(permissions.may_write("w"));
  EXPECT_FALSE(permissions.may_write("r"));
  EXPECT_TRUE(permissions.may_read("r"));
  EXPECT_FALSE(permissions.may_read("c"));
}

TEST(Permissions, TheDefaultExchangeHasAName) {
  EXPECT_EQ(permission_name(""), "amq.default");
  EXPECT_EQ(permission_name("x"), "x");
}

// Backtracking over this is exponential; it must end, and grants nothing when given up.
TEST(Permissions, ACostlyPatternEnds) {
  EXPECT_FALSE(grants("^(a|aa)+$", std::string(200, 'a') + "b"));
  EXPECT_FALSE(grants("^(([a-z])+.)+[A-Z]([a-z])+$", std::string(255, 'a')));
}

TEST(Permissions, ABrokenPatternIsNamed) {
  EXPECT_EQ(check_pattern("^a.*$"), "");
  EXPECT_EQ(check_pattern(""), "");
  for (const std::string_view pattern : {"(", "[a", "*", "a{2,1}", "\\"}) {
    EXPECT_NE(check_pattern(pattern).find(std::string(pattern)), std::string::npos) << pattern;
  }
  EXPECT_NE(check_pattern(std::string(100'000, '(')), "");
}

}  // namespace
}  // namespace stoat::broker
