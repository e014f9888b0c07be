// Lists of queues, in slices.

#include <algorithm>

#include "broker/admin/operations_impl.hpp"
#include "broker/admin/rights.hpp"
#include "broker/control.hpp"

namespace stoat::broker::admin {

namespace {

std::size_t size_of(const wire::FieldValue& value) {
  std::size_t bytes = sizeof value;
  if (const auto* text = value.as_string()) return bytes + text->size();
  if (const auto* raw = std::get_if<wire::ByteArray>(&value.value))
    return bytes + raw->bytes.size();
  if (const auto* array = value.as_array()) {
    for (const auto& element : *array) bytes += size_of(element);
  }
  if (const auto* table = value.as_table()) {
    for (const auto& [key, element] : table->entries()) bytes += key.size() + size_of(element);
  }
  return bytes;
}

// What a queue weighs in a list.
std::size_t size_of(const QueueSpec& spec) {
  std::size_t bytes = sizeof(QueueInfo) + spec.vhost.size() + spec.name.size();
  for (const auto& [key, value] : spec.arguments.entries()) bytes += key.size() + size_of(value);
  return bytes;
}

// The first place behind all of a vhost's; names are ordered as bytes.
QueuePlace behind_vhost(const std::string& vhost) {
  return {vhost + '\0', ""};
}

}  // namespace

asio::awaitable<QueuePage> Operations::list_queues(Caller caller, QueueQuery query) {
  QueueWalk walk;
  walk.user = caller.user;
  walk.vhost = std::move(query.vhost);
  walk.after = std::move(query.after);
  QueuePage page;
  std::size_t bytes = 0;
  while (!walk.finished && page.queues.size() < query.limit && bytes < kMaxPageBytes) {
    walk.limit = std::min(kSliceQueues, query.limit - page.queues.size());
    std::vector<QueueInfo> slice = co_await next_slice(walk);
    for (QueueInfo& queue : slice) {
      bytes += size_of(queue.spec);
      page.queues.push_back(std::move(queue));
    }
  }
  if (!walk.finished) page.next = std::move(walk.after);
  co_return page;
}

asio::awaitable<std::vector<QueueInfo>> Operations::next_slice(QueueWalk& walk) {
  struct Slice {
    std::vector<QueueInfo> queues;
    std::optional<QueuePlace> last;
    bool finished = true;
  };
  const auto read = [topology = &control_worker().control().topology(), walk] {
    const Rights rights = rights_of(*topology, walk.user);
    if (walk.vhost && topology->vhosts().count(*walk.vhost) == 0) {
      throw Refusal(RefusalCode::not_found, "no vhost '" + *walk.vhost + "'");
    }
    if (walk.vhost && !rights.may_see(*walk.vhost)) {
      throw Refusal(RefusalCode::access_refused,
                    "access to vhost '" + *walk.vhost + "' refused for user '" + walk.user + "'");
    }
    const auto& all = topology->queues();
    QueuePlace from = walk.vhost ? QueuePlace{*walk.vhost, ""} : QueuePlace{};
    auto at = all.lower_bound(from);
    if (walk.after && *walk.after >= from) at = all.upper_bound(*walk.after);
    Slice slice;
    std::size_t bytes = 0;
    while (at != all.end()) {
      const QueueSpec& spec = at->second.spec;
      if (walk.vhost && spec.vhost != *walk.vhost) break;
      if (!rights.may_see(spec.vhost)) {
        at = all.lower_bound(behind_vhost(spec.vhost));
        continue;
      }
      if (slice.queues.size() >= walk.limit || bytes >= kSliceBytes) {
        slice.finished = false;
        break;
      }
      bytes += size_of(spec);
      slice.last = at->first;
      slice.queues.push_back({spec, {}});
      ++at;
    }
    return slice;
  };
  Slice slice = co_await ask(control_worker(), read);
  walk.finished = slice.finished;
  if (slice.last) walk.after = std::move(slice.last);
  co_await add_stats(slice.queues);
  co_return std::move(slice.queues);
}

// Asks each home once. What was deleted meanwhile is left out.
asio::awaitable<void> Operations::add_stats(std::vector<QueueInfo>& queues) {
  std::vector<std::vector<QueueId>> by_home(workers_.size());
  for (const QueueInfo& queue : queues) {
    by_home[control_worker().home_of(queue.spec.id).value].push_back(queue.spec.id);
  }
  IdMap<QueueId, QueueStats> found;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (by_home[i].empty()) continue;
    auto read = [home = workers_[i], ids = std::move(by_home[i])] {
      std::vector<QueueStats> stats;
      for (QueueId id : ids) {
        if (const auto one = home->home().queue_stats(id)) stats.push_back(*one);
      }
      return stats;
    };
    const std::vector<QueueStats> stats = co_await run_on(*workers_[i], std::move(read));
    for (const QueueStats& one : stats) found.emplace(one.id, one);
  }
  std::erase_if(queues, [&](QueueInfo& queue) {
    const auto stats = found.find(queue.spec.id);
    if (stats == found.end()) return true;
    queue.stats = stats->second;
    return false;
  });
}

}  // namespace stoat::broker::admin
