#include "client/send_method.hpp"

#include "wire/utf8.hpp"

namespace stoat::client {

namespace {

constexpr std::size_t kMaxShortStringBytes = 255;

Error refuse(const char* why) {
  return Error(ErrorKind::invalid_argument, why);
}

std::optional<Error> check_value(const FieldValue& value, int depth);

std::optional<Error> check_entries(const Table& table, int depth) {
  if (depth > wire::kMaxTableDepth) return refuse("a table nested too deep");
  for (const auto& [key, value] : table.entries()) {
    if (key.size() > kMaxShortStringBytes) return refuse("a table key longer than 255 bytes");
    if (auto error = check_value(value, depth)) return error;
  }
  return std::nullopt;
}

std::optional<Error> check_value(const FieldValue& value, int depth) {
  if (const Table* table = value.as_table()) return check_entries(*table, depth + 1);
  if (const wire::Array* array = value.as_array()) {
    if (depth + 1 > wire::kMaxTableDepth) return refuse("an array nested too deep");
    for (const FieldValue& item : *array)
      if (auto error = check_value(item, depth + 1)) return error;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> check_short_string(std::string_view text) {
  if (text.size() > kMaxShortStringBytes) return refuse("a name longer than 255 bytes");
  if (!wire::valid_utf8(text)) return refuse("a name that is not UTF-8");
  return std::nullopt;
}

std::optional<Error> check_table(const Table& table) {
  return check_entries(table, 0);
}

std::optional<Error> check_properties(const wire::Properties& p) {
  for (const auto* text :
       {&p.content_type, &p.content_encoding, &p.correlation_id, &p.reply_to, &p.expiration,
        &p.message_id, &p.type, &p.user_id, &p.app_id, &p.cluster_id})
    if (*text && (*text)->size() > kMaxShortStringBytes)
      return refuse("a property longer than 255 bytes");
  return p.headers ? check_table(*p.headers) : std::nullopt;
}

}  // namespace stoat::client
