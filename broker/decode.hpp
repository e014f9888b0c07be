#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "wire/codec.hpp"
#include "wire/reply_code.hpp"
#include "wire/utf8.hpp"

namespace stoat::broker {

// The method in a frame's payload, or 501: the peer's bytes are not what their ids say.
// So is a short string that is not UTF-8.
template <class M>
M decode_or_throw(std::string_view payload) {
  auto method = wire::decode_method<M>(payload);
  if (!method) {
    throw wire::ConnectionError(wire::ConnectionErrorCode::frame_error, "malformed method body",
                                M::kId);
  }
  boost::pfr::for_each_field(*method, [](const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, wire::ShortString>) {
      if (wire::valid_utf8(field.text)) return;
      throw wire::ConnectionError(wire::ConnectionErrorCode::frame_error,
                                  "short string is not UTF-8", M::kId);
    }
  });
  return *std::move(method);
}

[[noreturn]] inline void throw_no_channel(ChannelNumber number) {
  throw wire::ConnectionError(wire::ConnectionErrorCode::channel_error,
                              "expected 'channel.open' on channel " + std::to_string(number.value));
}

}  // namespace stoat::broker
