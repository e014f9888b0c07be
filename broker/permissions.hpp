#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace stoat::broker {

struct PermissionDef;

// What one user may do on one vhost: three regular expressions over the names of exchanges and
// queues, compiled. As in RabbitMQ a pattern matches anywhere in the name unless anchored, and an
// empty one (like "^$") matches only the empty name.
//
// Owner: shared as shared_ptr<const Permissions>; a change makes a new one. Thread: any; immutable.
// A pattern that is no regular expression, or too costly to match, grants nothing.
// Does not: cache answers (a connection does), know what a method needs.
class Permissions {
 public:
  explicit Permissions(const PermissionDef& permission);
  ~Permissions();
  Permissions(const Permissions&) = delete;
  Permissions& operator=(const Permissions&) = delete;

  // The default exchange is asked for by permission_name().
  bool may_configure(std::string_view name) const;
  bool may_write(std::string_view name) const;
  bool may_read(std::string_view name) const;

 private:
  class Pattern;
  std::unique_ptr<const Pattern> configure_;
  std::unique_ptr<const Pattern> write_;
  std::unique_ptr<const Pattern> read_;
};

// The name under which permissions speak of an exchange: "amq.default" for the default one.
inline std::string_view permission_name(std::string_view exchange) {
  return exchange.empty() ? std::string_view("amq.default") : exchange;
}

// Why a pattern cannot be used; empty when it can.
std::string check_pattern(std::string_view pattern);

}  // namespace stoat::broker
