#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/field_value.hpp"
#include "wire/properties.hpp"

// What is checked of a message whoever publishes it. Each answers what is wrong, as a reply text
// of PRECONDITION_FAILED has it; empty when nothing is.

namespace stoat::broker {

// The header whose routing keys only the broker sees.
inline constexpr std::string_view kBccHeader = "BCC";

// user-id (the tag impersonator allows any) and expiration. `user` publishes and has these tags.
std::string check_properties(const wire::PropertiesView& properties, std::string_view user,
                             std::span<const std::string> tags);

// Appends the further routing keys in headers CC and BCC.
std::string read_extra_keys(const wire::Table& headers, std::vector<std::string>& keys);

}  // namespace stoat::broker
