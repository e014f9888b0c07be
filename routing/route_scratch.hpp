#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "routing/binding.hpp"
#include "routing/mark_set.hpp"
#include "routing/table_index.hpp"
#include "wire/field_value.hpp"
#include "wire/properties.hpp"

namespace stoat::routing {

struct Routable;

// The state of one route() call: the message as exchanges see it, where it has got to, and the
// buffers of the topic matcher. Kept from call to call, so that routing allocates nothing once the
// buffers have grown; good for any number of tables, one call at a time.
// Owner: broker::Worker. Thread: that worker's only.
// Invariants: a queue is in queues() at most once, an exchange is handed out at most once.
class RouteScratch {
 public:
  RouteScratch() = default;
  RouteScratch(const RouteScratch&) = delete;
  RouteScratch& operator=(const RouteScratch&) = delete;

  // The queues found by the last route().
  std::span<const QueueId> queues() const { return queues_; }

  // The rest is for the routing table and its exchanges.

  // Begins a message in a table whose targets are numbered below `targets`.
  void begin(const Routable& message, std::span<const std::string_view> extra_keys,
             std::size_t targets);

  // The routing key and the extra keys.
  std::span<const std::string_view> keys() const { return keys_; }
  // The message's headers, parsed at the first call for a message; empty when it has none.
  const TableIndex& headers();

  void reach(const Target& target) {
    ++matches_;
    if (!reached_.insert(target.number)) return;
    if (target.exchange == nullptr) {
      queues_.push_back(target.queue);
    } else {
      exchanges_.push_back(target.exchange);
    }
  }
  // How often reach() was called for this message, for targets old and new.
  std::uint64_t matches() const { return matches_; }
  // An exchange that was reached and not handed out yet; nullptr when none is left.
  const Exchange* next_exchange();

  // Trie nodes; see TopicExchange.
  struct TopicBuffers {
    std::vector<std::uint32_t> current;
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> hashes;
    MarkSet<> entered;
  };
  TopicBuffers& topic() { return topic_; }

 private:
  std::vector<std::string_view> keys_;
  const wire::PropertiesView* properties_ = nullptr;
  bool headers_parsed_ = false;
  wire::Table headers_;
  TableIndex header_index_;
  std::string header_bytes_;

  MarkSet<> reached_;
  std::uint64_t matches_ = 0;
  std::vector<QueueId> queues_;
  std::vector<const Exchange*> exchanges_;

  TopicBuffers topic_;
};

}  // namespace stoat::routing
