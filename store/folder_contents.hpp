#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "store/damaged_database.hpp"
#include "store/folder_report.hpp"
#include "store/key_layout.hpp"
#include "store/settled_set.hpp"
#include "store/shared_body.hpp"

namespace stoat::store {

// What the keys and values of a folder say, as far as they can be read: its queues, their streams,
// and which messages of these are alive. Malformed ones are passed over and added to the damage.
//
// Owner: check_folder or salvage_folder. Thread: one.
class FolderContents {
 public:
  struct Stream {
    std::optional<StreamRecord> record;
    SettledSet settled;
    // Of the durable messages that can be read and are alive.
    SettledSet seen{SettledSet::Tracking::none};
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  using Streams = std::map<std::pair<QueueId, std::uint8_t>, Stream>;
  using IsWhole = std::function<bool(std::string_view message)>;

  explicit FolderContents(DamagedDatabase& database);

  // Both hand out what can be read, each once, in no order: bodies, whoever still has them; then
  // messages that are alive, but for those that refer to a body which cannot be read. `is_whole`
  // judges a message's form; empty: every one will do.
  void read_bodies(const IsWhole& is_whole, const OnEntry& on_body);
  void read_messages(const IsWhole& is_whole, const OnEntry& on_alive);

  // With queues without messages too; after read_messages they are complete.
  const Streams& streams() const { return streams_; }
  QueueId next_queue_id() const { return next_queue_id_; }
  FolderReport report() const;

 private:
  void read_meta();
  void read_queue_key(std::string_view key, std::string_view value);
  void drop_streams_without_queue();
  bool takes(const StreamId& id) const;
  std::optional<std::uint64_t> size_of(std::string_view key, std::string_view value,
                                       const IsWhole& is_whole) const;
  void malformed(const char* family, const std::string& what);

  DamagedDatabase& database_;
  std::set<QueueId> alive_;
  std::set<QueueId> deleted_;
  QueueId next_queue_id_{1};
  Streams streams_;
  std::unordered_map<BodyId, std::uint64_t> bodies_;  // that can be read: size of the message
};

}  // namespace stoat::store
