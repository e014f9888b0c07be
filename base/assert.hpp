#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

// STOAT_ASSERT(condition, values...): a bug of our own, never reachable from a peer's input.
// Stays on in release builds; prints the condition and the values, then aborts, so that a broken
// invariant stops the process before it can confirm something untrue.

namespace stoat::detail {

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void assert_failed(const char* condition, const char* file,
                                                          int line, const Values&... values) {
  std::ostringstream text;
  text << file << ':' << line << ": assertion failed: " << condition;
  ((text << " | " << values), ...);
  std::fprintf(stderr, "%s\n", text.str().c_str());
  std::abort();
}

}  // namespace stoat::detail

#define STOAT_ASSERT(condition, ...)                          \
  (__builtin_expect(static_cast<bool>(condition), 1)          \
       ? static_cast<void>(0)                                 \
       : ::stoat::detail::assert_failed(#condition, __FILE__, \
                                        __LINE__ __VA_OPT__(, ) __VA_ARGS__))
