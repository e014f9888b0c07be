// Lines of text: binding keys, of which those after a '-' are unbound again, and at last a routing
// key. The topic exchange must agree with the rule of a topic match, written down plainly below.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"
#include "routing/routing_table.hpp"

namespace stoat::routing {
namespace {

constexpr std::size_t kMaxLines = 40;
constexpr std::size_t kMaxKeyBytes = 255;  // of a short string

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> words_of(std::string_view key) {
  return key.empty() ? std::vector<std::string_view>{} : split(key, '.');
}

bool topic_matches(std::string_view binding_key, std::string_view routing_key) {
  const auto words = words_of(routing_key);
  // reached[n]: the pattern so far can take the first n words.
  std::vector<bool> reached(words.size() + 1);
  reached[0] = true;
  for (const std::string_view part : words_of(binding_key)) {
    std::vector<bool> next(words.size() + 1);
    for (std::size_t n = 0; n <= words.size(); ++n) {
      if (part == "#") {
        next[n] = reached[n] || (n > 0 && next[n - 1]);
      } else {
        next[n] = n > 0 && reached[n - 1] && (part == "*" || part == words[n - 1]);
      }
    }
    reached = next;
  }
  return reached.back();
}

struct BindingLine {
  std::string_view key;
  bool unbound = false;
};

void check(std::string_view input) {
  std::vector<std::string_view> lines = split(input, '\n');
  if (lines.size() > kMaxLines) lines.resize(kMaxLines);
  const std::string_view routing_key = lines.back().substr(0, kMaxKeyBytes);
  lines.pop_back();
  std::vector<BindingLine> bindings;
  for (std::string_view line : lines) {
    const bool unbound = line.starts_with('-');
    if (unbound) line.remove_prefix(1);
    bindings.push_back({line.substr(0, kMaxKeyBytes), unbound});
  }

  RoutingTable table;
  table.add_exchange({.name = "x", .type = ExchangeType::topic, .alternate_exchange = ""});
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    table.add_queue(std::to_string(i), QueueId(i));
    STOAT_ASSERT(table.bind_queue("x", QueueId(i), bindings[i].key, {}), bindings[i].key);
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    if (!bindings[i].unbound) continue;
    STOAT_ASSERT(table.unbind_queue("x", QueueId(i), bindings[i].key, {}), bindings[i].key);
  }
  RouteScratch scratch;
  std::vector<bool> reached(bindings.size());
  for (const QueueId queue : table.route(*table.find("x"), {routing_key, nullptr}, {}, scratch)) {
    STOAT_ASSERT(!reached[queue.value], queue);
    reached[queue.value] = true;
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const auto& [key, unbound] = bindings[i];
    const bool expected = !unbound && topic_matches(key, routing_key);
    STOAT_ASSERT(reached[i] == expected, key, routing_key, expected);
  }
}

}  // namespace
}  // namespace stoat::routing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stoat::routing::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
