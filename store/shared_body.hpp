#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "store/key_layout.hpp"

namespace stoat::store {

// Names a body of the family "bodies". Never used again while anything may refer to it.
using BodyId = StrongId<struct BodyIdTag, std::uint64_t>;

// Who shares a body: one message of one stream.
struct BodyUser {
  StreamId stream;
  Sequence sequence;
};

// What stands in a message's place: where its bytes are.
struct BodyReference {
  BodyId body;
  std::uint64_t size = 0;  // of the message's bytes
};

inline BodyKey body_key(BodyId body) {
  BodyKey key;
  store_big(key.bytes.data(), body.value);
  return key;
}
inline std::optional<BodyId> parse_body_key(std::string_view key) {
  if (key.size() != sizeof(BodyKey)) return std::nullopt;
  return BodyId{load_big<std::uint64_t>(key.data())};
}

inline constexpr std::size_t kBodyReferenceSize = 16;

inline std::array<char, kBodyReferenceSize> encode_reference(const BodyReference& reference) {
  std::array<char, kBodyReferenceSize> encoded;
  store_big(encoded.data(), reference.body.value);
  store_big(encoded.data() + 8, reference.size);
  return encoded;
}
inline std::optional<BodyReference> decode_reference(std::string_view encoded) {
  if (encoded.size() != kBodyReferenceSize) return std::nullopt;
  return BodyReference{BodyId{load_big<std::uint64_t>(encoded.data())},
                       load_big<std::uint64_t>(encoded.data() + 8)};
}

inline constexpr std::size_t kBodyUserSize = 17;

// What stands in front of a body's bytes.
inline void encode_users(std::span<const BodyUser> users, std::string* out) {
  std::array<char, 4> count;
  store_big(count.data(), static_cast<std::uint32_t>(users.size()));
  out->append(count.data(), count.size());
  for (const BodyUser& user : users) out->append(message_key(user.stream, user.sequence).view());
}

// A body's value, taken apart. A view: lives as long as the value.
class BodyView {
 public:
  // nullopt: malformed.
  static std::optional<BodyView> parse(std::string_view value) {
    if (value.size() < 4) return std::nullopt;
    const std::uint64_t count = load_big<std::uint32_t>(value.data());
    if ((value.size() - 4) / kBodyUserSize < count) return std::nullopt;
    return BodyView(value.substr(4, count * kBodyUserSize),
                    value.substr(4 + count * kBodyUserSize));
  }

  std::size_t user_count() const { return users_.size() / kBodyUserSize; }
  BodyUser user(std::size_t index) const {
    const std::string_view key = users_.substr(index * kBodyUserSize, kBodyUserSize);
    return {stream_of(key), sequence_of(key)};
  }
  std::string_view bytes() const { return bytes_; }

 private:
  BodyView(std::string_view users, std::string_view bytes) : users_(users), bytes_(bytes) {}

  std::string_view users_;
  std::string_view bytes_;
};

}  // namespace stoat::store
