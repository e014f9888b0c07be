#include "broker/log.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace stoat::broker {
namespace {

TEST(Log, OneLineWithTimeAndLevel) {
  log::start("info");
  testing::internal::CaptureStderr();
  log::debug("not at this level");
  log::info("hello");
  log::warn("a name\nlike\x1b[2Jthis {}");
  const std::string output = testing::internal::GetCapturedStderr();
  const std::regex expected(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info +hello\n)"
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning +a name\\nlike\\x1b\[2Jthis \{\}\n)");
  EXPECT_TRUE(std::regex_match(output, expected)) << output;
}

TEST(Log, LevelsHoldBackWhatIsBelow) {
  log::start("error");
  EXPECT_FALSE(log::enabled(log::Level::warn));
  EXPECT_TRUE(log::enabled(log::Level::error));
  log::start("off");
  EXPECT_FALSE(log::enabled(log::Level::error));
  log::start("trace");
  EXPECT_TRUE(log::enabled(log::Level::trace));
}

TEST(Log, PrintableKeepsTextAndEscapesControlCharacters) {
  EXPECT_EQ(log::printable("plain žluť"), "plain žluť");
  EXPECT_EQ(log::printable(std::string("a\0\t\r\x7f", 5)), "a\\x00\\t\\x0d\\x7f");
}

}  // namespace
}  // namespace stoat::broker
