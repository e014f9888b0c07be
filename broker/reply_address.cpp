#include "broker/reply_address.hpp"

#include <array>
#include <charconv>

namespace stoat::broker {

std::string reply_queue_name(const ReplyAddress& address) {
  std::string name(kReplyQueueName);
  for (std::uint64_t part : {std::uint64_t{address.worker.value}, address.connection.value,
                             std::uint64_t{address.channel.number.value},
                             std::uint64_t{address.channel.incarnation.value}, address.secret}) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), part, 16).ptr;
    name.push_back('.');
    name.append(digits.begin(), end);
  }
  return name;
}

std::optional<ReplyAddress> parse_reply_queue_name(std::string_view name) {
  if (!is_reply_queue_name(name)) return std::nullopt;
  name.remove_prefix(kReplyQueueName.size());
  std::array<std::uint64_t, 5> parts;
  for (std::uint64_t& part : parts) {
    if (name.empty() || name.front() != '.') return std::nullopt;
    name.remove_prefix(1);
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), part, 16);
    if (error != std::errc()) return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  }
  if (!name.empty() || parts[0] > UINT32_MAX || parts[2] > UINT16_MAX || parts[3] > UINT32_MAX) {
    return std::nullopt;
  }
  return ReplyAddress{WorkerIndex(static_cast<std::uint32_t>(parts[0])),
                      ConnectionId(parts[1]),
                      {ChannelNumber(static_cast<std::uint16_t>(parts[2])),
                       ChannelIncarnation(static_cast<std::uint32_t>(parts[3]))},
                      parts[4]};
}

}  // namespace stoat::broker
