#include "broker/json_fields.hpp"

#include <algorithm>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

namespace stoat::broker {

namespace json = boost::json;

json::value parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::parser parser({}, options);
  json::error_code error;
  const std::size_t read = parser.write_some(text.data(), text.size(), error);
  // What follows the document may be white space only.
  const std::size_t end = text.find_first_not_of(" \t\r\n", read);
  if (!error && end == std::string_view::npos) return parser.release();

  const std::string_view before = text.substr(0, error ? read : end);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  throw JsonMistake("line " + std::to_string(line) + ", column " +
                    std::to_string(before.size() - line_start + 1) + ": " +
                    (error ? error.message() : "text after the document"));
}

JsonFields::JsonFields(const json::value& object, std::string where)
    : object_(object.if_object()), where_(std::move(where)) {
  if (object_ == nullptr) throw JsonMistake(where_ + " must be an object");
}

const json::value* JsonFields::find(std::string_view member) const {
  return object_->if_contains(member);
}

const json::value& JsonFields::at(std::string_view member) const {
  const json::value* value = find(member);
  if (value == nullptr)
    throw JsonMistake(where_ + ": member '" + std::string(member) + "' is missing");
  return *value;
}

std::string JsonFields::text(std::string_view member) const {
  const json::string* text = at(member).if_string();
  if (text == nullptr) fail(member, "must be a string");
  return std::string(text->data(), text->size());
}

std::string JsonFields::text_or(std::string_view member, std::string_view otherwise) const {
  return find(member) == nullptr ? std::string(otherwise) : text(member);
}

bool JsonFields::flag(std::string_view member) const {
  const bool* flag = at(member).if_bool();
  if (flag == nullptr) fail(member, "must be true or false");
  return *flag;
}

bool JsonFields::flag_or(std::string_view member, bool otherwise) const {
  return find(member) == nullptr ? otherwise : flag(member);
}

std::uint64_t JsonFields::number(std::string_view member) const {
  json::error_code error;
  const auto number = at(member).to_number<std::uint64_t>(error);
  if (error) fail(member, "must be a whole number that is not negative");
  return number;
}

void JsonFields::fail(std::string_view member, std::string_view must) const {
  throw JsonMistake(where_ + ": member '" + std::string(member) + "' " + std::string(must));
}

}  // namespace stoat::broker
