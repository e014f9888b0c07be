#include "broker/publish_checks.hpp"

#include <algorithm>

#include "broker/expiration.hpp"

namespace stoat::broker {

namespace {

constexpr std::string_view kCcHeader = "CC";

bool may_impersonate(std::span<const std::string> tags) {
  return std::find(tags.begin(), tags.end(), "impersonator") != tags.end();
}

}  // namespace

std::string check_properties(const wire::PropertiesView& properties, std::string_view user,
                             std::span<const std::string> tags) {
  const auto sender = properties.user_id();
  if (sender && *sender != user && !may_impersonate(tags)) {
    return "user_id property set to '" + std::string(*sender) + "' but authenticated user was '" +
           std::string(user) + "'";
  }
  if (const auto expiration = properties.expiration();
      expiration && !parse_expiration(*expiration)) {
    return "invalid expiration '" + std::string(*expiration) +
           "': expected milliseconds as digits, at most ten years";
  }
  return {};
}

std::string read_extra_keys(const wire::Table& headers, std::vector<std::string>& keys) {
  for (std::string_view name : {kCcHeader, kBccHeader}) {
    const wire::FieldValue* value = headers.find(name);
    if (value == nullptr) continue;
    const wire::Array* array = value->as_array();
    bool well_formed = array != nullptr;
    for (std::size_t i = 0; well_formed && i < array->size(); ++i) {
      const std::string* key = (*array)[i].as_string();
      well_formed = key != nullptr;
      if (well_formed) keys.push_back(*key);
    }
    if (!well_formed) {
      return "unexpected type of header '" + std::string(name) +
             "': expected an array of long strings";
    }
  }
  return {};
}

}  // namespace stoat::broker
