#include "routing/headers_exchange.hpp"

#include <utility>

#include "base/assert.hpp"
#include "routing/route_scratch.hpp"

namespace stoat::routing {

namespace {

constexpr std::string_view kXMatch = "x-match";

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

bool HeadersExchange::Rule::matches(const TableIndex& headers) const {
  for (const TableIndex::Entry& pair : pairs) {
    const wire::FieldValue* header = headers.find(pair.key);
    const bool equal =
        header != nullptr && (std::holds_alternative<wire::Void>(pair.value->value) ||
                              wire::equivalent(*pair.value, *header));
    if (equal == any) return any;
  }
  return !any;
}

void HeadersExchange::match(RouteScratch& scratch) const {
  const TableIndex& headers = scratch.headers();
  for (const Rule& rule : rules_) {
    if (rule.matches(headers)) scratch.reach(rule.binding->destination);
  }
}

void HeadersExchange::insert(Binding& binding) {
  XMatch mode;
  if (const wire::FieldValue* value = binding.arguments.find(kXMatch)) {
    const std::string* text = value->as_string();
    STOAT_ASSERT(text != nullptr && parse_x_match(*text, mode), name(), value->to_text());
  }
  Rule rule{&binding, mode.any, {}};
  const TableIndex index(binding.arguments);
  for (const TableIndex::Entry& pair : index.entries()) {
    if (pair.key == kXMatch || (!mode.with_x && pair.key.starts_with("x-"))) continue;
    rule.pairs.push_back(pair);
  }
  binding.list_place = static_cast<std::uint32_t>(rules_.size());
  rules_.push_back(std::move(rule));
}

void HeadersExchange::erase(Binding& binding) {
  const std::uint32_t place = binding.list_place;
  STOAT_ASSERT(place < rules_.size() && rules_[place].binding == &binding, name(), place);
  if (place + 1 != rules_.size()) rules_[place] = std::move(rules_.back());
  rules_[place].binding->list_place = place;
  rules_.pop_back();
}

}  // namespace stoat::routing
