#include "client/content_assembler.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "wire/basic.hpp"
#include "wire/properties.hpp"
#include "wire/reply_code.hpp"

namespace stoat::client {

namespace {
// What is reserved on the word of a header alone; the rest grows with the bytes that come.
constexpr std::uint64_t kMaxReservedBytes = 128 * 1024;
}  // namespace

void ContentAssembler::begin() {
  STOAT_ASSERT(idle());
  step_ = Step::header;
  properties_.clear();
  body_.clear();
}

bool ContentAssembler::on_header(std::string_view payload) {
  using enum wire::ConnectionErrorCode;
  if (step_ != Step::header)
    throw wire::ConnectionError(unexpected_frame, "content header without its method");
  const auto header = wire::ContentHeader::decode(payload);
  if (!header) throw wire::ConnectionError(syntax_error, "content header cut short");
  if (header->class_id != wire::basic::kClass)
    throw wire::ConnectionError(unexpected_frame, "content header of another class");
  if (!wire::PropertiesView(header->properties).ok())
    throw wire::ConnectionError(syntax_error, "malformed properties");
  if (header->body_size > max_body_bytes_)
    throw wire::ChannelError(wire::ChannelErrorCode::content_too_large,
                             "message of " + std::to_string(header->body_size) +
                                 " bytes, the client takes " + std::to_string(max_body_bytes_));
  properties_ = header->properties;
  body_left_ = header->body_size;
  body_.reserve(std::min(body_left_, kMaxReservedBytes));
  step_ = body_left_ == 0 ? Step::idle : Step::body;
  return idle();
}

bool ContentAssembler::on_body(std::string_view bytes) {
  using enum wire::ConnectionErrorCode;
  if (step_ != Step::body)
    throw wire::ConnectionError(unexpected_frame, "body frame where none is due");
  if (bytes.size() > body_left_)
    throw wire::ConnectionError(unexpected_frame, "more body bytes than the header announced");
  body_.append(bytes);
  body_left_ -= bytes.size();
  if (body_left_ == 0) step_ = Step::idle;
  return idle();
}

}  // namespace stoat::client
