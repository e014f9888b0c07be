#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "broker/admin/operations.hpp"

// What the files of Operations share.

namespace stoat::broker::admin {

template <class T>
T value_or_throw(std::variant<T, Refusal> answer) {
  if (const Refusal* refusal = std::get_if<Refusal>(&answer)) throw *refusal;
  return std::get<T>(std::move(answer));
}

// As run_on(), for what may throw Refusal: it crosses threads as a value, so that an exception is
// only ever touched by the thread that throws it.
template <class Fn>
asio::awaitable<std::invoke_result_t<Fn>> ask(Worker& worker, Fn fn) {
  using Answer = std::variant<std::invoke_result_t<Fn>, Refusal>;
  auto guarded = [fn = std::move(fn)]() -> Answer {
    try {
      return fn();
    } catch (const Refusal& refusal) {
      return refusal;
    }
  };
  co_return value_or_throw(co_await run_on(worker, std::move(guarded)));
}

// Where a walk over queues has got to.
struct Operations::QueueWalk {
  std::string user;
  std::optional<std::string> vhost;
  std::optional<QueuePlace> after;
  std::size_t limit = kSliceQueues;  // of one slice
  bool finished = false;
};

}  // namespace stoat::broker::admin
