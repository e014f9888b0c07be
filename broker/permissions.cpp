#include "broker/permissions.hpp"

#include <boost/regex.hpp>
#include <optional>
#include <stdexcept>

#include "broker/topology.hpp"

namespace stoat::broker {

// Boost.Regex rather than std::regex: Perl's syntax, as RabbitMQ's patterns are, no recursion on
// the subject's length, and it gives up where backtracking would explode.
class Permissions::Pattern {
 public:
  explicit Pattern(const std::string& pattern)
      : everything_(pattern == ".*"), only_empty_(pattern.empty() || pattern == "^$") {
    if (everything_ || only_empty_) return;
    try {
      expression_.emplace(pattern, boost::regex::perl);
    } catch (const std::runtime_error&) {
      // Stays unset: grants nothing. Patterns are checked where they come in.
    }
  }

  bool matches(std::string_view name) const {
    if (everything_) return true;
    if (only_empty_) return name.empty();
    if (!expression_) return false;
    try {
      // Without match_single_line ^ and $ would also match at line breaks within the name.
      return boost::regex_search(
          name.begin(), name.end(), *expression_,
          boost::regex_constants::match_single_line | boost::regex_constants::match_any);
    } catch (const std::runtime_error&) {
      return false;  // too costly
    }
  }

 private:
  bool everything_;
  bool only_empty_;
  std::optional<boost::regex> expression_;
};

Permissions::Permissions(const PermissionDef& permission)
    : configure_(std::make_unique<Pattern>(permission.configure)),
      write_(std::make_unique<Pattern>(permission.write)),
      read_(std::make_unique<Pattern>(permission.read)) {}

Permissions::~Permissions() = default;

bool Permissions::may_configure(std::string_view name) const {
  return configure_->matches(name);
}

bool Permissions::may_write(std::string_view name) const {
  return write_->matches(name);
}

bool Permissions::may_read(std::string_view name) const {
  return read_->matches(name);
}

std::string check_pattern(std::string_view pattern) {
  try {
    const boost::regex expression(pattern.begin(), pattern.end(), boost::regex::perl);
    return {};
  } catch (const std::runtime_error& error) {
    return "'" + std::string(pattern) + "' is no regular expression: " + error.what();
  }
}

}  // namespace stoat::broker
