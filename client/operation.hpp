#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "client/session.hpp"

// From the machine's completions to coroutines: what every co_await of the public classes is.

namespace stoat::client {

// A Completion that posts to the executor of whoever waits, so that no program code runs inside
// the machine or on its strand. Until then that executor has work.
template <class T, class Handler>
Completion<T> completion_for(Handler handler, const Session::Strand& strand) {
  auto executor = asio::prefer(asio::get_associated_executor(handler, strand),
                               asio::execution::outstanding_work.tracked);
  return [handler = std::move(handler), executor](Result<T> result) mutable {
    asio::post(executor, [handler = std::move(handler), result = std::move(result)]() mutable {
      std::exception_ptr error;
      if (result.has_error()) error = std::make_exception_ptr(result.error());
      if constexpr (std::is_void_v<T>)
        std::move(handler)(error);
      else
        std::move(handler)(error, error ? T() : std::move(*result));
    });
  };
}

template <class T>
struct CompletionSignature {
  using type = void(std::exception_ptr, T);
};
template <>
struct CompletionSignature<void> {
  using type = void(std::exception_ptr);
};

// begin(Session&, Completion<T>) is called when the awaitable is awaited; an Error is thrown there.
template <class T, class Begin>
asio::awaitable<T> await_completion(std::shared_ptr<Session> session, Begin begin) {
  return asio::async_initiate<const asio::use_awaitable_t<>, typename CompletionSignature<T>::type>(
      [](auto handler, std::shared_ptr<Session> on, Begin start) {
        auto completion = completion_for<T>(std::move(handler), on->strand());
        start(*on, std::move(completion));
      },
      asio::use_awaitable, std::move(session), std::move(begin));
}

// The same for an operation of the machine: call(ConnectionMachine&, Completion<T>) on the strand.
template <class T, class Call>
asio::awaitable<T> await_machine(std::shared_ptr<Session> session, Call call) {
  return await_completion<T>(
      std::move(session), [call = std::move(call)](Session& on, Completion<T> completion) mutable {
        on.perform([call = std::move(call),
                    completion = std::move(completion)](ConnectionMachine& machine) mutable {
          call(machine, std::move(completion));
        });
      });
}

// The same for an operation of a channel: call(ChannelMachine&, Completion<T>).
template <class T, class Call>
asio::awaitable<T> await_channel(std::shared_ptr<Session> session, ChannelIncarnation incarnation,
                                 Call call) {
  return await_machine<T>(std::move(session),
                          [incarnation, call = std::move(call)](ConnectionMachine& machine,
                                                                Completion<T> completion) mutable {
                            if (ChannelMachine* channel = machine.channel(incarnation))
                              call(*channel, std::move(completion));
                            else
                              completion(machine.gone_reason());
                          });
}

}  // namespace stoat::client
