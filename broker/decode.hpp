#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "wire/codec.hpp"
#include "wire/reply_code.hpp"

namespace stoat::broker {

// The method in a frame's payload, or 501: the peer's bytes are not what their ids say.
template <class M>
M decode_or_throw(std::string_view payload) {
  if (auto method = wire::decode_method<M>(payload)) return *std::move(method);
  throw wire::ConnectionError(wire::ConnectionErrorCode::frame_error, "malformed method body",
                              M::kId);
}

[[noreturn]] inline void throw_no_channel(ChannelNumber number) {
  throw wire::ConnectionError(wire::ConnectionErrorCode::channel_error,
                              "expected 'channel.open' on channel " +
                                  std::to_string(number.value));
}

}  // namespace stoat::broker
