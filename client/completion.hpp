#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "stoat/client/error.hpp"

namespace stoat::client {

// std::move_only_function is not in C++20; this is the little of it that is needed here.
template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction>) UniqueFunction(F&& f)  // NOLINT
      : held_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(f))) {}

  explicit operator bool() const { return held_ != nullptr; }
  R operator()(Args... args) { return held_->call(std::forward<Args>(args)...); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Holder final : Base {
    explicit Holder(F f) : function(std::move(f)) {}
    R call(Args... args) override { return function(std::forward<Args>(args)...); }
    F function;
  };
  std::unique_ptr<Base> held_;
};

// A value or the Error that there is instead. (boost::system::result wants an error type that can
// be default-constructed, and an Error without a reason should not exist.)
template <class T>
class Result {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  Result() requires std::is_void_v<T>  // success
  = default;
  template <class U>
  requires std::is_convertible_v<U&&, Value> Result(U&& value)  // NOLINT: reads as the value
      : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return held_.index() == 0; }
  bool has_error() const { return held_.index() == 1; }
  // REQUIRES: has_value().
  Value& operator*() { return *std::get_if<0>(&held_); }
  Value* operator->() { return std::get_if<0>(&held_); }
  // REQUIRES: has_error().
  const Error& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<Value, Error> held_;
};

// How an operation of the state machines ends: called once, at any time from within the call that
// began it on. REQUIRES of whoever gives one: it does not call back into the machine.
template <class T>
using Completion = UniqueFunction<void(Result<T>)>;

}  // namespace stoat::client
