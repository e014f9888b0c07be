#pragma once

#include <exception>
#include <string>
#include <utility>

namespace stoat::broker::admin {

// Numbered as AMQP and HTTP number the same thing.
enum class RefusalCode : int {
  not_logged_in = 401,
  access_refused = 403,
  not_found = 404,
  precondition_failed = 406,
  unavailable = 503,
};

// Thrown by an operation that cannot be done as asked; the text is for the one who asked.
struct Refusal : std::exception {
  Refusal(RefusalCode c, std::string t) : code(c), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  RefusalCode code;
  std::string text;
};

}  // namespace stoat::broker::admin
