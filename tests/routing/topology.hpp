#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routing/route_scratch.hpp"
#include "routing/routing_table.hpp"
#include "wire/properties.hpp"

namespace stoat::routing::testing {

using Names = std::vector<std::string>;

// A routing table whose queues go by name, as a client sees them. A queue that is declared again
// after its deletion is a new one.
class Topology {
 public:
  void declare(std::string_view name, ExchangeType type, std::string_view alternate = {}) {
    table.add_exchange(
        {.name = std::string(name), .type = type, .alternate_exchange = std::string(alternate)});
  }
  QueueId declare_queue(std::string_view name) {
    const QueueId id(next_id_++);
    ids_[std::string(name)] = id;
    names_[id] = name;
    table.add_queue(name, id);
    return id;
  }
  // The exchanges that lost their last binding.
  Names delete_queue(std::string_view name) {
    Names unused;
    table.remove_queue(name, id_of(name), &unused);
    ids_.erase(std::string(name));
    std::sort(unused.begin(), unused.end());
    return unused;
  }
  Names delete_exchange(std::string_view name) {
    Names unused;
    EXPECT_TRUE(table.remove_exchange(name, &unused));
    std::sort(unused.begin(), unused.end());
    return unused;
  }

  // Declares the queue when it is not there.
  bool bind(std::string_view source, std::string_view queue, std::string_view key = {},
            const wire::Table& arguments = {}) {
    if (!ids_.contains(std::string(queue))) declare_queue(queue);
    return table.bind_queue(source, id_of(queue), key, arguments);
  }
  bool unbind(std::string_view source, std::string_view queue, std::string_view key = {},
              const wire::Table& arguments = {}) {
    return table.unbind_queue(source, id_of(queue), key, arguments);
  }

  // The queues that a publish reaches, sorted; a queue reached twice would be there twice.
  Names route(std::string_view exchange, std::string_view key = {},
              std::vector<std::string_view> extra_keys = {}) {
    return route_message(exchange, key, extra_keys, nullptr);
  }
  Names route_headers(std::string_view exchange, const wire::Table& headers,
                      std::string_view key = {}) {
    wire::Properties properties;
    properties.headers = headers;
    const std::string raw = properties.encode();
    const wire::PropertiesView view(raw);
    EXPECT_TRUE(view.ok());
    return route_message(exchange, key, {}, &view);
  }
  Names route_message(std::string_view exchange, std::string_view key,
                      const std::vector<std::string_view>& extra_keys,
                      const wire::PropertiesView* properties) {
    const Exchange* found = table.find(exchange);
    EXPECT_NE(found, nullptr) << exchange;
    if (found == nullptr) return {};
    Names names;
    for (const QueueId id : table.route(*found, {key, properties}, extra_keys, scratch)) {
      names.push_back(names_.at(id));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  QueueId id_of(std::string_view queue) const { return ids_.at(std::string(queue)); }

  RoutingTable table;
  RouteScratch scratch;

 private:
  std::uint64_t next_id_ = 1;
  std::map<std::string, QueueId> ids_;    // of the queues there are
  std::map<QueueId, std::string> names_;  // of all that ever were
};

}  // namespace stoat::routing::testing
