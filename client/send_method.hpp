#pragma once

#include <boost/pfr/core.hpp>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/ids.hpp"
#include "client/machine_context.hpp"
#include "stoat/client/error.hpp"
#include "wire/codec.hpp"
#include "wire/properties.hpp"

// The program's arguments are checked before they are encoded, so that a name that is too long or
// not UTF-8 is an error of that one call and not of the whole connection.

namespace stoat::client {

// nullopt: can be sent.
std::optional<Error> check_short_string(std::string_view text);
std::optional<Error> check_table(const Table& table);
std::optional<Error> check_properties(const wire::Properties& properties);

// Appends the method to the output; on an error nothing is appended.
template <class Method>
std::optional<Error> send_method(MachineContext& context, ChannelNumber channel,
                                 const Method& method) {
  std::optional<Error> error;
  boost::pfr::for_each_field(method, [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if (error) return;
    if constexpr (std::is_same_v<Field, wire::ShortString>) error = check_short_string(field);
    if constexpr (std::is_same_v<Field, Table>) error = check_table(field);
  });
  if (error) return error;
  const std::size_t start = context.output.size();
  wire::append_method(context.output, channel, method);
  if (context.output.size() - start > context.frame_max_bytes) {
    context.output.resize(start);
    return Error(ErrorKind::invalid_argument, "arguments do not fit into one frame");
  }
  return std::nullopt;
}

}  // namespace stoat::client
