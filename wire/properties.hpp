#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/field_value.hpp"

namespace stoat::wire {

// The fourteen properties of class basic (specification 1.8), as a program writes them down.
struct Properties {
  std::optional<std::string> content_type;
  std::optional<std::string> content_encoding;
  std::optional<Table> headers;
  std::optional<std::uint8_t> delivery_mode;  // 2 = persistent
  std::optional<std::uint8_t> priority;
  std::optional<std::string> correlation_id;
  std::optional<std::string> reply_to;
  std::optional<std::string> expiration;
  std::optional<std::string> message_id;
  std::optional<std::uint64_t> timestamp;
  std::optional<std::string> type;
  std::optional<std::string> user_id;
  std::optional<std::string> app_id;
  std::optional<std::string> cluster_id;

  // Flags and list, as in a content header after the body size. Errors: none; REQUIRES each short
  // string at most 255 bytes.
  std::string encode() const;
};

// The property bytes of a content header as a peer sent them (flags and list), checked once and
// read on demand; the bytes themselves travel unchanged. Views live as long as the bytes.
class PropertiesView {
 public:
  // An empty property list.
  PropertiesView() = default;
  // ok() is false when the bytes are cut short, a table is malformed or bytes are left over.
  explicit PropertiesView(std::string_view raw);

  bool ok() const { return ok_; }
  std::string_view raw() const { return raw_; }

  std::uint8_t delivery_mode() const { return delivery_mode_; }  // 0 when absent
  bool persistent() const { return delivery_mode_ == 2; }
  std::optional<std::uint8_t> priority() const;
  std::optional<std::string_view> expiration() const;
  std::optional<std::string_view> user_id() const;
  std::optional<std::string_view> reply_to() const;
  std::optional<std::string_view> message_id() const;
  std::optional<std::string_view> correlation_id() const;
  bool has_headers() const;
  // The entries of the headers table without its length prefix; empty when absent.
  std::string_view raw_headers() const;

  // Everything, parsed. REQUIRES: ok().
  Properties parse() const;

 private:
  bool has(int index) const;
  std::optional<std::string_view> short_string(int index) const;

  std::string_view raw_{"\0\0", 2};
  bool ok_ = true;
  std::uint16_t flags_ = 0;
  std::uint8_t delivery_mode_ = 0;
  // Where each present property's value begins in raw_, in flag order; 0 when absent.
  std::uint32_t offset_[14] = {};
};

// Content header payload (specification 4.2.6.1) without its frame.
struct ContentHeader {
  std::uint16_t class_id = 0;
  std::uint64_t body_size = 0;
  std::string_view properties;  // flags and list, unchecked

  // nullopt when cut short.
  static std::optional<ContentHeader> decode(std::string_view payload);
};

}  // namespace stoat::wire
