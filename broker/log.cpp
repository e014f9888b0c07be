#include "broker/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/assert.hpp"

namespace stoat::broker::log {
namespace {

struct Named {
  std::string_view name;
  spdlog::level::level_enum level;
};
// In the order of Level.
constexpr std::array kLevels{
    Named{"trace", spdlog::level::trace}, Named{"debug", spdlog::level::debug},
    Named{"info", spdlog::level::info},   Named{"warn", spdlog::level::warn},
    Named{"error", spdlog::level::err},   Named{"off", spdlog::level::off},
};

// 2024-05-01T12:00:00.000Z info    text
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v";

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("stoatd",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(kPattern, spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum level_of(Level level) {
  return kLevels[static_cast<std::size_t>(level)].level;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

void start(std::string_view level) {
  const auto named = std::find_if(kLevels.begin(), kLevels.end(),
                                  [level](const Named& known) { return known.name == level; });
  STOAT_ASSERT(named != kLevels.end(), level);
  logger().set_level(named->level);
}

bool enabled(Level level) {
  return logger().should_log(level_of(level));
}

void write(Level level, std::string_view line) {
  if (!enabled(level)) return;
  const bool clean = std::none_of(line.begin(), line.end(), is_control);
  const std::string escaped = clean ? std::string() : printable(line);
  const std::string_view text = clean ? line : std::string_view(escaped);
  logger().log(level_of(level), spdlog::string_view_t(text.data(), text.size()));
}

std::string printable(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_control(c)) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace stoat::broker::log
