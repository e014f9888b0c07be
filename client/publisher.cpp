#include "client/publisher.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "client/send_method.hpp"
#include "wire/basic.hpp"
#include "wire/confirm.hpp"

namespace stoat::client {

namespace {
// Frame header and end, class id, weight and body size of a content header frame.
constexpr std::size_t kContentHeaderOverheadBytes = 8 + 2 + 2 + 8;
}  // namespace

bool Publisher::has_room(const Publish& publish) const {
  if (!flow_active_ || !context_.room_to_send()) return false;
  return !(publish.confirm || confirms_selected_) ||
         confirms_.outstanding() < context_.options.max_unconfirmed;
}

void Publisher::publish(Publish publish) {
  if (publish.properties.size() + kContentHeaderOverheadBytes > context_.frame_max_bytes)
    return publish.done(Error(ErrorKind::invalid_argument, "properties do not fit into one frame"));
  const SteadyTime deadline =
      context_.deadline_after(publish.timeout.value_or(context_.options.publish_timeout));
  if (waiting_.empty() && has_room(publish)) return send(std::move(publish), deadline);
  if (waiting_.size() >= kMaxWaiting)
    return publish.done(Error(ErrorKind::limit_reached, "too many publishes wait for room"));
  waiting_.push_back({std::move(publish), deadline});
}

void Publisher::pump() {
  while (!waiting_.empty() && has_room(waiting_.front().publish)) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    send(std::move(next.publish), next.deadline);
  }
}

void Publisher::send(Publish publish, SteadyTime deadline) {
  if (publish.confirm && !confirms_selected_)
    if (auto error = select_confirms()) return publish.done(*error);
  const wire::basic::Publish method{.exchange = publish.exchange,
                                    .routing_key = publish.routing_key,
                                    .mandatory = publish.mandatory};
  if (auto error = send_method(context_, channel_, method)) return publish.done(*error);
  wire::append_content_header(context_.output, channel_, publish.body.size(), publish.properties);
  wire::append_body(context_.output, channel_, publish.body, context_.frame_max_bytes);

  if (!publish.confirm) {
    if (confirms_selected_) confirms_.add_unwatched();
    return publish.done(PublishResult{});
  }
  std::optional<ConfirmTracker::Fingerprint> fingerprint;
  if (publish.mandatory)
    fingerprint =
        ConfirmTracker::Fingerprint::of(publish.exchange, publish.routing_key, publish.body);
  confirms_.add(std::move(publish.done), deadline, fingerprint);
}

std::optional<Error> Publisher::select_confirms() {
  if (rpcs_.full()) return Error(ErrorKind::limit_reached, "too many methods wait for a reply");
  if (auto error = send_method(context_, channel_, wire::confirm::Select{})) return error;
  // Nobody waits for select-ok by itself: publishes follow at once, and end with the channel if
  // the broker refuses.
  rpcs_.push({wire::confirm::SelectOk::kId}, context_.deadline_after(context_.options.rpc_timeout),
             [](const auto&) {});
  confirms_selected_ = true;
  return std::nullopt;
}

void Publisher::on_confirm(std::uint64_t tag, bool multiple, PublishStatus status) {
  if (!confirms_.settle(PublishTag(tag), multiple, status))
    throw wire::ConnectionError(wire::ConnectionErrorCode::command_invalid,
                                "confirm of a tag that was never published");
  pump();
}

void Publisher::on_return(std::uint16_t code, std::string_view text, std::string_view exchange,
                          std::string_view routing_key, std::string_view body) {
  // One that matches nothing can only be of a publish that was given up; nobody is left to tell.
  confirms_.returned(ConfirmTracker::Fingerprint::of(exchange, routing_key, body), code, text);
}

void Publisher::on_flow(bool active) {
  flow_active_ = active;
  pump();
}

SteadyTime Publisher::expire(SteadyTime now) {
  SteadyTime earliest = confirms_.expire(now);
  std::deque<Waiting> still_waiting;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.deadline <= now) {
      waiting.publish.done(
          Error(ErrorKind::timeout, "no room to publish within the time limit; it was not sent"));
    } else {
      earliest = std::min(earliest, waiting.deadline);
      still_waiting.push_back(std::move(waiting));
    }
  }
  waiting_ = std::move(still_waiting);
  return earliest;
}

void Publisher::end(const Error& reason) {
  for (Waiting& waiting : std::exchange(waiting_, {})) waiting.publish.done(reason);
  confirms_.fail_all(reason.reply_code(),
                     reason.reply_code() == 0 ? reason.what() : reason.reply_text());
}

}  // namespace stoat::client
