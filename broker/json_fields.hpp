#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// Reading JSON with its shape checked: stored definitions, definitions files, the admin door.

namespace stoat::broker {

// JSON that is not what was expected. what() is one line that names the member.
struct JsonMistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parses a whole document of UTF-8 text. Throws JsonMistake with line and column. Nesting is
// bounded by kMaxJsonDepth.
boost::json::value parse_json(std::string_view text);
inline constexpr int kMaxJsonDepth = 256;

// The members of one JSON object, each read with its type checked. Every function throws
// JsonMistake, which names `where` ("queue 'orders'") and the member.
// Does not own the value: REQUIRES that it outlives the fields.
class JsonFields {
 public:
  JsonFields(const boost::json::value& object, std::string where);

  const boost::json::value* find(std::string_view member) const;  // nullptr: absent
  const boost::json::value& at(std::string_view member) const;
  std::string text(std::string_view member) const;
  std::string text_or(std::string_view member, std::string_view otherwise) const;
  bool flag(std::string_view member) const;
  bool flag_or(std::string_view member, bool otherwise) const;
  std::uint64_t number(std::string_view member) const;

  const std::string& where() const { return where_; }
  // "queue 'orders': member 'durable' must be …"
  [[noreturn]] void fail(std::string_view member, std::string_view must) const;

 private:
  const boost::json::object* object_;
  std::string where_;
};

}  // namespace stoat::broker
