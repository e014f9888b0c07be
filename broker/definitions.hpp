#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "broker/topology.hpp"

namespace stoat::broker {

// What a definitions file in RabbitMQ's JSON adds to a topology, checked as a whole: every name it
// refers to exists, in the file or before it, and every argument is good. In the order in which it
// is to be applied.
struct Definitions {
  std::vector<VhostDef> vhosts;  // new ones
  std::vector<UserDef> users;    // new, or replacing
  std::vector<PermissionDef> permissions;
  std::vector<ExchangeDef> exchanges;  // new ones
  std::vector<QueueSpec> queues;       // new ones, without ids
  std::vector<BindingDef> bindings;    // new ones
  // What the file has and is not taken, each with its reason, one line each.
  std::vector<std::string> ignored;
};

// Why a file is refused as a whole. what() is one line that names the entry.
struct DefinitionsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DefinitionsError. A queue or exchange that exists stays as it is; if the file would have
// it otherwise, that is among the ignored. Topic permissions are refused, because to leave them out
// would grant more than the file does; policies, parameters and limits are ignored.
Definitions parse_definitions(std::string_view json, const Topology& existing);

// The same from a file, which what() names then.
Definitions read_definitions(const std::filesystem::path& file, const Topology& existing);

}  // namespace stoat::broker
