#pragma once

#include <string>

#include "wire/field_value.hpp"

namespace stoat::broker {

// A name for arguments in keys: the same for equal ones (wire::equivalent), different for others.
// Empty for an empty table, else 32 hexadecimal digits.
std::string arguments_digest(const wire::Table& arguments);

}  // namespace stoat::broker
