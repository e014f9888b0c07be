// The payload of a content header frame: its fixed part, then property flags and list.

#include <cstdint>
#include <string>

#include "base/assert.hpp"
#include "wire/properties.hpp"

namespace {

using namespace stoat::wire;

void check_accessors(const PropertiesView& view, const Properties& parsed) {
  STOAT_ASSERT(view.delivery_mode() == parsed.delivery_mode.value_or(0));
  STOAT_ASSERT(view.persistent() == (parsed.delivery_mode == 2));
  STOAT_ASSERT(view.priority() == parsed.priority);
  STOAT_ASSERT(view.expiration() == parsed.expiration);
  STOAT_ASSERT(view.user_id() == parsed.user_id);
  STOAT_ASSERT(view.reply_to() == parsed.reply_to);
  STOAT_ASSERT(view.message_id() == parsed.message_id);
  STOAT_ASSERT(view.correlation_id() == parsed.correlation_id);
  STOAT_ASSERT(view.has_headers() == parsed.headers.has_value());
  STOAT_ASSERT(view.raw_headers().empty() == (!parsed.headers || parsed.headers->empty()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = ContentHeader::decode({reinterpret_cast<const char*>(data), size});
  STOAT_ASSERT(header.has_value() == (size >= 12), size);
  if (!header) return 0;
  const PropertiesView view(header->properties);
  if (!view.ok()) {
    check_accessors(view, Properties());
    return 0;
  }
  const Properties parsed = view.parse();
  check_accessors(view, parsed);

  const std::string once = parsed.encode();
  // Only a bool written as an octet above 1 comes back otherwise, so lengths never differ.
  STOAT_ASSERT(once.size() == view.raw().size(), once.size(), view.raw().size());
  const PropertiesView again(once);
  STOAT_ASSERT(again.ok());
  STOAT_ASSERT(again.parse().encode() == once);
  return 0;
}
