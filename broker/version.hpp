#pragma once

#include <string_view>

namespace stoat::broker {

// "0.1.0": the project's version, three numbers.
std::string_view version();

}  // namespace stoat::broker
