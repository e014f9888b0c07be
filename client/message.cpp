#include "stoat/client/message.hpp"

namespace stoat::client {

Message Message::persistent(std::string message_body) {
  Message message(std::move(message_body));
  message.properties.delivery_mode = kPersistent;
  return message;
}

std::string_view to_string(PublishStatus status) {
  switch (status) {
    case PublishStatus::acked:
      return "acked";
    case PublishStatus::nacked:
      return "nacked";
    case PublishStatus::returned:
      return "returned";
    case PublishStatus::lost:
      return "lost";
  }
  return "unknown";
}

}  // namespace stoat::client
