#pragma once

#include <string>

#include "wire/reply_code.hpp"

namespace stoat::test {

// "queue.declare-ok"; "class 60 method 99" for one that is not known.
std::string method_name(wire::MethodId id);

// The method of a method frame's payload for a failure message, with the arguments that explain it:
// code and text of a close or return, tags of an ack.
std::string describe_method(std::string_view payload);

}  // namespace stoat::test
