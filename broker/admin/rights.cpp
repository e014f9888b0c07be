#include "broker/admin/rights.hpp"

#include <algorithm>

#include "broker/admin/refusal.hpp"

namespace stoat::broker::admin {

namespace {

bool has_tag(const UserDef& user, std::string_view tag) {
  return std::find(user.tags.begin(), user.tags.end(), tag) != user.tags.end();
}

bool sees_everything(const UserDef& user) {
  return has_tag(user, "administrator") || has_tag(user, "monitoring");
}

}  // namespace

bool is_admin_user(const UserDef& user) {
  return sees_everything(user) || has_tag(user, "management") || has_tag(user, "policymaker");
}

Rights rights_of(const Topology& topology, const std::string& user) {
  const auto found = topology.users().find(user);
  if (found == topology.users().end() || !is_admin_user(found->second)) {
    throw Refusal(RefusalCode::access_refused, "user '" + user + "' may not use the admin door");
  }
  Rights rights;
  rights.everything = sees_everything(found->second);
  if (rights.everything) return rights;
  for (const auto& [name, vhost] : topology.vhosts()) {
    if (topology.permissions().count({name, user}) > 0) rights.vhosts.insert(name);
  }
  return rights;
}

}  // namespace stoat::broker::admin
