// A field table with its length prefix, read both ways: parsed and only checked.

#include <cstdint>
#include <string>

#include "base/assert.hpp"
#include "wire/field_value.hpp"
#include "wire/reader.hpp"
#include "wire/reply_code.hpp"
#include "wire/utf8.hpp"
#include "wire/writer.hpp"

namespace {

using namespace stoat::wire;

std::string encoded(const Table& table) {
  std::string out;
  Writer(out).table(table);
  return out;
}

// Each bool has one octet that is not 0 or 1 to lose; everything else comes back as it came.
bool same_but_bools(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(i > 0 && a[i - 1] == 't' && b[i] == 1)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  Reader parse(raw);
  const Table table = parse.table();
  Reader check(raw);
  const std::string_view entries = check.checked_table();
  STOAT_ASSERT(parse.ok() == check.ok(), parse.ok(), check.ok());
  STOAT_ASSERT(parse.remaining() == check.remaining());
  if (!parse.ok()) {
    STOAT_ASSERT(table.empty() && entries.empty());
    return 0;
  }

  const std::string once = encoded(table);
  STOAT_ASSERT(same_but_bools(raw.substr(0, raw.size() - parse.remaining()), once));
  Reader again(once);
  const Table second = again.table();
  STOAT_ASSERT(again.ok() && again.at_end());
  STOAT_ASSERT(encoded(second) == once);
  STOAT_ASSERT(equivalent(table, second) && equivalent(second, table));

  for (const auto& [key, value] : table.entries()) {
    STOAT_ASSERT(table.find(key) != nullptr);
    STOAT_ASSERT(!value.type_name().empty());
    const std::string text = reply_text(ChannelErrorCode::precondition_failed, value.to_text());
    STOAT_ASSERT(text.size() <= 255 && valid_utf8(text), text.size());
  }
  return 0;
}
