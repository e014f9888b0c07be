#pragma once

#include <set>
#include <string>
#include <string_view>

#include "broker/topology.hpp"

namespace stoat::broker::admin {

// What of the broker a user may see, by tags as in RabbitMQ: administrator and monitoring
// everything; management and policymaker the vhosts that the user has permissions on.
struct Rights {
  bool everything = false;
  std::set<std::string> vhosts;  // when not everything

  bool may_see(const std::string& vhost) const { return everything || vhosts.count(vhost) > 0; }
};

// Whether the user has one of the tags that the admin door asks for.
bool is_admin_user(const UserDef& user);

// Throws Refusal 403 when the user is gone or has no such tag any more.
Rights rights_of(const Topology& topology, const std::string& user);

}  // namespace stoat::broker::admin
