#pragma once

#include <string>

#include "broker/channel.hpp"
#include "wire/codec.hpp"

// Shared by the files that implement Channel.

namespace stoat::broker {

template <class M>
void Channel::reply(const M& method) {
  wire::append_method(connection_.output().tail(), ref_.number, method);
  connection_.mark_dirty();
}

[[noreturn]] inline void throw_unknown_method(wire::MethodId id) {
  throw wire::ConnectionError(
      wire::ConnectionErrorCode::command_invalid,
      "unknown method " + std::to_string(id.class_id) + "." + std::to_string(id.method_id), id);
}

[[noreturn]] inline void throw_not_implemented(const char* what, wire::MethodId id) {
  throw wire::ConnectionError(wire::ConnectionErrorCode::not_implemented, what, id);
}

}  // namespace stoat::broker
