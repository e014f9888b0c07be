#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace stoat::routing::testing {

inline std::vector<std::string_view> split_words(std::string_view key) {
  std::vector<std::string_view> words;
  if (key.empty()) return words;
  for (std::size_t dot; (dot = key.find('.')) != std::string_view::npos;) {
    words.push_back(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  words.push_back(key);
  return words;
}

// The definition of a topic match, written down as such: exponential, for short patterns only.
inline bool topic_matches(std::span<const std::string_view> pattern,
                          std::span<const std::string_view> words) {
  if (pattern.empty()) return words.empty();
  const auto rest = pattern.subspan(1);
  if (pattern[0] == "#") {
    return topic_matches(rest, words) ||
           (!words.empty() && topic_matches(pattern, words.subspan(1)));
  }
  if (words.empty()) return false;
  return (pattern[0] == "*" || pattern[0] == words[0]) && topic_matches(rest, words.subspan(1));
}

inline bool topic_matches(std::string_view binding_key, std::string_view routing_key) {
  return topic_matches(split_words(binding_key), split_words(routing_key));
}

}  // namespace stoat::routing::testing
