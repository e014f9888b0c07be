#include "routing/headers_exchange.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"

namespace stoat::routing {

namespace {

constexpr std::string_view kXMatch = "x-match";

// Where rules that ask for a key with this value are filed; without value, for its presence.
std::size_t pair_hash(std::string_view key, const wire::FieldValue* value) {
  const std::size_t hash = std::hash<std::string_view>{}(key);
  return value == nullptr ? hash : mix_hash(hash, 1 + value_hash(*value));
}

bool is_void(const wire::FieldValue& value) {
  return std::holds_alternative<wire::Void>(value.value);
}

struct XMatch {
  bool any = false;
  bool with_x = false;
};

bool parse_x_match(std::string_view text, XMatch& mode) {
  if (text == "all")
    mode = {.any = false, .with_x = false};
  else if (text == "any")
    mode = {.any = true, .with_x = false};
  else if (text == "all-with-x")
    mode = {.any = false, .with_x = true};
  else if (text == "any-with-x")
    mode = {.any = true, .with_x = true};
  else
    return false;
  return true;
}

}  // namespace

std::string check_headers_binding(const wire::Table& arguments) {
  const wire::FieldValue* value = arguments.find(kXMatch);
  if (value == nullptr) return {};
  const std::string* text = value->as_string();
  if (text == nullptr) {
    return "Invalid x-match field type " + std::string(value->type_name()) + " (value " +
           value->to_text() + "); expected longstr";
  }
  if (XMatch ignored; parse_x_match(*text, ignored)) return {};
  return "Invalid x-match field value '" + *text +
         "'; expected all, any, all-with-x, or any-with-x";
}

bool HeadersExchange::Pair::matches(const TableIndex& headers) const {
  const wire::FieldValue* header = headers.find(entry.key);
  return header != nullptr && (is_void(*entry.value) || wire::equivalent(*entry.value, *header));
}

// Of an `any` only the pair it is filed under here is looked at: each of the others has its turn.
bool HeadersExchange::Filed::matches(const TableIndex& headers) const {
  if (rule->any) return rule->pairs[pair].matches(headers);
  return std::all_of(rule->pairs.begin(), rule->pairs.end(),
                     [&](const Pair& each) { return each.matches(headers); });
}

void HeadersExchange::match(RouteScratch& scratch) const {
  always_.reach_all(scratch);
  if (filed_.empty()) return;
  for (const auto& [key, value] : scratch.headers().entries()) {
    match_filed(pair_hash(key, nullptr), scratch);
    match_filed(pair_hash(key, value), scratch);
  }
}

void HeadersExchange::match_filed(std::size_t hash, RouteScratch& scratch) const {
  const auto at = filed_.find(hash);
  if (at == filed_.end()) return;
  for (const Filed& filed : at->second) {
    if (!filed.matches(scratch.headers())) continue;
    scratch.reach(filed.rule->binding.destination.target);
  }
}

void HeadersExchange::insert(Binding& binding) {
  XMatch mode;
  if (const wire::FieldValue* value = binding.arguments.find(kXMatch)) {
    const std::string* text = value->as_string();
    STOAT_ASSERT(text != nullptr && parse_x_match(*text, mode), name(), value->to_text());
  }
  std::vector<Pair> pairs;
  const TableIndex index(binding.arguments);
  for (const TableIndex::Entry& entry : index.entries()) {
    if (entry.key == kXMatch || (!mode.with_x && entry.key.starts_with("x-"))) continue;
    const wire::FieldValue* value = is_void(*entry.value) ? nullptr : entry.value;
    pairs.push_back({entry, pair_hash(entry.key, value)});
  }
  if (pairs.empty() && !mode.any) {
    always_.add(binding);
    return;
  }
  auto& rule = rules_[&binding];
  rule.reset(new Rule{binding, mode.any, std::move(pairs)});
  if (rule->any) {
    for (std::uint32_t pair = 0; pair < rule->pairs.size(); ++pair) file(*rule, pair);
  } else {
    rule->filed_pair = least_used_pair(*rule);
    file(*rule, rule->filed_pair);
  }
}

void HeadersExchange::erase(Binding& binding) {
  const auto at = rules_.find(&binding);
  if (at == rules_.end()) {
    always_.remove(binding);
    return;
  }
  const Rule& rule = *at->second;
  if (rule.any) {
    for (const Pair& pair : rule.pairs) unfile(pair);
  } else {
    unfile(rule.pairs[rule.filed_pair]);
  }
  rules_.erase(at);
}

void HeadersExchange::file(Rule& rule, std::uint32_t pair) {
  std::vector<Filed>& list = filed_[rule.pairs[pair].hash];
  rule.pairs[pair].place = static_cast<std::uint32_t>(list.size());
  list.push_back({&rule, pair});
}

void HeadersExchange::unfile(const Pair& pair) {
  const auto at = filed_.find(pair.hash);
  STOAT_ASSERT(at != filed_.end(), name(), pair.entry.key);
  std::vector<Filed>& list = at->second;
  STOAT_ASSERT(&list[pair.place].rule->pairs[list[pair.place].pair] == &pair, name(), pair.place);
  const std::uint32_t place = pair.place;
  list[place] = list.back();
  list[place].rule->pairs[list[place].pair].place = place;
  list.pop_back();
  if (list.empty()) filed_.erase(at);
}

// What most bindings ask for, such as a common content type, tells them apart least.
std::uint32_t HeadersExchange::least_used_pair(const Rule& rule) const {
  std::uint32_t best = 0;
  std::size_t best_uses = SIZE_MAX;
  for (std::uint32_t pair = 0; pair < rule.pairs.size() && best_uses > 0; ++pair) {
    const auto at = filed_.find(rule.pairs[pair].hash);
    const std::size_t uses = at == filed_.end() ? 0 : at->second.size();
    if (uses >= best_uses) continue;
    best = pair;
    best_uses = uses;
  }
  return best;
}

}  // namespace stoat::routing
