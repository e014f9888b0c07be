#include "wire/properties.hpp"

#include <bit>

#include "base/assert.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

namespace stoat::wire {
namespace {

// Properties in the order of their flags: index 0 is flag bit 15. Specification 4.2.6.1 and 1.8.
enum Index : int {
  kContentType,
  kContentEncoding,
  kHeaders,
  kDeliveryMode,
  kPriority,
  kCorrelationId,
  kReplyTo,
  kExpiration,
  kMessageId,
  kTimestamp,
  kType,
  kUserId,
  kAppId,
  kClusterId,
  kPropertyCount
};

// Bit 1 has no property in class basic; bit 0 announces a further flag word, which none needs.
constexpr std::uint16_t kUnknownFlags = 3;

constexpr std::uint16_t flag(int index) {
  return static_cast<std::uint16_t>(0x8000u >> index);
}

void skip_property(Reader& in, int index) {
  switch (index) {
    case kHeaders:
      in.checked_table();
      break;
    case kDeliveryMode:
    case kPriority:
      in.u8();
      break;
    case kTimestamp:
      in.u64();
      break;
    default:
      in.short_string();
  }
}

// Calls visit(index, member) for each property in wire order.
template <class P, class Visit>
void for_each_property(P& properties, Visit visit) {
  visit(kContentType, properties.content_type);
  visit(kContentEncoding, properties.content_encoding);
  visit(kHeaders, properties.headers);
  visit(kDeliveryMode, properties.delivery_mode);
  visit(kPriority, properties.priority);
  visit(kCorrelationId, properties.correlation_id);
  visit(kReplyTo, properties.reply_to);
  visit(kExpiration, properties.expiration);
  visit(kMessageId, properties.message_id);
  visit(kTimestamp, properties.timestamp);
  visit(kType, properties.type);
  visit(kUserId, properties.user_id);
  visit(kAppId, properties.app_id);
  visit(kClusterId, properties.cluster_id);
}

void write(Writer& w, const std::string& text) {
  w.short_string(text);
}
void write(Writer& w, const Table& table) {
  w.table(table);
}
void write(Writer& w, std::uint8_t value) {
  w.u8(value);
}
void write(Writer& w, std::uint64_t value) {
  w.u64(value);
}

void read(Reader& in, std::optional<std::string>& to) {
  to = in.short_string();
}
void read(Reader& in, std::optional<Table>& to) {
  to = in.table();
}
void read(Reader& in, std::optional<std::uint8_t>& to) {
  to = in.u8();
}
void read(Reader& in, std::optional<std::uint64_t>& to) {
  to = in.u64();
}

}  // namespace

std::string Properties::encode() const {
  std::string out(2, '\0');
  Writer w(out);
  std::uint16_t flags = 0;
  for_each_property(*this, [&](int index, const auto& member) {
    if (!member) return;
    flags |= flag(index);
    write(w, *member);
  });
  store_big(out.data(), flags);
  return out;
}

PropertiesView::PropertiesView(std::string_view raw) : raw_(raw) {
  Reader in(raw);
  const std::uint16_t flags = in.u16();
  if (flags & kUnknownFlags) in.fail();
  for (std::uint16_t left = flags; left != 0 && in.ok();) {
    const int index = std::countl_zero(left);
    left &= static_cast<std::uint16_t>(~flag(index));
    offset_[index] = static_cast<std::uint32_t>(raw.size() - in.remaining());
    skip_property(in, index);
  }
  ok_ = in.ok() && in.at_end();
  if (!ok_) return;  // flags_ stays 0: every accessor answers absent
  flags_ = flags;
  if (has(kDeliveryMode)) delivery_mode_ = static_cast<std::uint8_t>(raw_[offset_[kDeliveryMode]]);
}

bool PropertiesView::has(int index) const {
  return flags_ & flag(index);
}

std::optional<std::string_view> PropertiesView::short_string(int index) const {
  if (!has(index)) return std::nullopt;
  return Reader(raw_.substr(offset_[index])).short_string();
}

std::optional<std::uint8_t> PropertiesView::priority() const {
  if (!has(kPriority)) return std::nullopt;
  return static_cast<std::uint8_t>(raw_[offset_[kPriority]]);
}

std::optional<std::string_view> PropertiesView::expiration() const {
  return short_string(kExpiration);
}

std::optional<std::string_view> PropertiesView::user_id() const {
  return short_string(kUserId);
}

std::optional<std::string_view> PropertiesView::reply_to() const {
  return short_string(kReplyTo);
}

std::optional<std::string_view> PropertiesView::message_id() const {
  return short_string(kMessageId);
}

std::optional<std::string_view> PropertiesView::correlation_id() const {
  return short_string(kCorrelationId);
}

bool PropertiesView::has_headers() const {
  return has(kHeaders);
}

std::string_view PropertiesView::raw_headers() const {
  if (!has(kHeaders)) return {};
  return Reader(raw_.substr(offset_[kHeaders])).long_string();
}

Properties PropertiesView::parse() const {
  STOAT_ASSERT(ok_, raw_.size());
  Properties properties;
  Reader in(raw_);
  in.u16();
  for_each_property(properties, [&](int index, auto& member) {
    if (has(index)) read(in, member);
  });
  STOAT_ASSERT(in.ok() && in.at_end(), raw_.size());
  return properties;
}

std::optional<ContentHeader> ContentHeader::decode(std::string_view payload) {
  Reader in(payload);
  ContentHeader header;
  header.class_id = in.u16();
  in.u16();  // weight, unused and not checked by others either
  header.body_size = in.u64();
  if (!in.ok()) return std::nullopt;
  header.properties = in.rest();
  return header;
}

}  // namespace stoat::wire
