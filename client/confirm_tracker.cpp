#include "client/confirm_tracker.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace stoat::client {

ConfirmTracker::Fingerprint ConfirmTracker::Fingerprint::of(std::string_view exchange,
                                                            std::string_view routing_key,
                                                            std::string_view body) {
  const std::hash<std::string_view> hash;
  return {hash(exchange) * 31 + hash(routing_key), hash(body)};
}

PublishTag ConfirmTracker::add(Done done, SteadyTime deadline,
                               std::optional<Fingerprint> fingerprint) {
  Entry entry;
  entry.done = std::move(done);
  entry.deadline = deadline;
  entry.mandatory = fingerprint;
  entries_.push_back(std::move(entry));
  ++outstanding_;
  return PublishTag(first_tag_.value + entries_.size() - 1);
}

PublishTag ConfirmTracker::add_unwatched() {
  return add({}, SteadyTime::max(), std::nullopt);
}

void ConfirmTracker::finish(Entry& entry, PublishResult result) {
  // Moved out first: whoever is called sees this publish as answered.
  if (Done done = std::exchange(entry.done, {})) done(std::move(result));
}

void ConfirmTracker::settle_one(Entry& entry, PublishStatus status) {
  if (entry.settled) return;
  entry.settled = true;
  --outstanding_;
  if (entry.returned)
    finish(entry, {PublishStatus::returned, entry.return_code, std::move(entry.return_text)});
  else
    finish(entry, {status, 0, {}});
}

void ConfirmTracker::give_up(Entry& entry, std::uint16_t code, std::string_view text) {
  if (entry.returned)
    finish(entry, {PublishStatus::returned, entry.return_code, std::move(entry.return_text)});
  else
    finish(entry, {PublishStatus::lost, code, std::string(text)});
}

bool ConfirmTracker::settle(PublishTag tag, bool multiple, PublishStatus status) {
  const std::uint64_t next_tag = first_tag_.value + entries_.size();
  if (tag.value >= next_tag || (tag.value == 0 && !multiple)) return false;
  const std::uint64_t last = tag.value == 0 ? next_tag - 1 : tag.value;
  if (last < first_tag_.value) return true;
  const std::size_t index = last - first_tag_.value;
  for (std::size_t i = multiple ? 0 : index; i <= index; ++i) settle_one(entries_[i], status);
  while (!entries_.empty() && entries_.front().settled) {
    entries_.pop_front();
    first_tag_ = first_tag_.next();
  }
  return true;
}

bool ConfirmTracker::returned(const Fingerprint& fingerprint, std::uint16_t code,
                              std::string_view text) {
  Entry* match = nullptr;
  for (Entry& entry : entries_) {
    if (entry.settled || !entry.mandatory || entry.returned) continue;
    if (entry.mandatory->route != fingerprint.route) continue;
    if (entry.mandatory->body == fingerprint.body) {
      match = &entry;
      break;
    }
    // A broker or plugin may have changed the body: then the oldest with this route it is.
    if (match == nullptr) match = &entry;
  }
  if (match == nullptr) return false;
  match->returned = true;
  match->return_code = code;
  match->return_text = text;
  return true;
}

SteadyTime ConfirmTracker::expire(SteadyTime now) {
  SteadyTime earliest = SteadyTime::max();
  for (Entry& entry : entries_) {
    if (!entry.done) continue;
    if (entry.deadline <= now)
      give_up(entry, 0, "no confirm within the time limit");
    else
      earliest = std::min(earliest, entry.deadline);
  }
  return earliest;
}

void ConfirmTracker::fail_all(std::uint16_t code, std::string_view text) {
  std::deque<Entry> entries = std::exchange(entries_, {});
  first_tag_ = PublishTag(first_tag_.value + entries.size());
  outstanding_ = 0;
  for (Entry& entry : entries) give_up(entry, code, text);
}

}  // namespace stoat::client
