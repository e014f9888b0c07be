#pragma once

#include <string>
#include <string_view>

// The log: one line per event on standard error, with time and level. Plain functions, so that the
// library behind stays out of most files; a line that needs formatting checks enabled() first
// where it is written often.
//
// Thread: any, once start() has run; before that, lines go out at level info.
// Names that a peer sent may hold anything: control characters are written escaped, so that one
// event is one line.

namespace stoat::broker::log {

enum class Level { trace, debug, info, warn, error, off };

// `level` is one of the names above. REQUIRES: a name that Config accepts. Called once, first.
void start(std::string_view level);

bool enabled(Level level);
void write(Level level, std::string_view line);

inline void trace(std::string_view line) {
  write(Level::trace, line);
}
inline void debug(std::string_view line) {
  write(Level::debug, line);
}
inline void info(std::string_view line) {
  write(Level::info, line);
}
inline void warn(std::string_view line) {
  write(Level::warn, line);
}
inline void error(std::string_view line) {
  write(Level::error, line);
}

// What write() makes of a line: control characters as \n, \t or \x1b.
std::string printable(std::string_view line);

}  // namespace stoat::broker::log
