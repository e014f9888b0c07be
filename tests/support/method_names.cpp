#include "tests/support/method_names.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/connection.hpp"

namespace stoat::test {
namespace {

using Entry = std::pair<wire::MethodId, std::string_view>;

constexpr std::array kNames{
    Entry{{10, 10}, "connection.start"},
    Entry{{10, 11}, "connection.start-ok"},
    Entry{{10, 20}, "connection.secure"},
    Entry{{10, 21}, "connection.secure-ok"},
    Entry{{10, 30}, "connection.tune"},
    Entry{{10, 31}, "connection.tune-ok"},
    Entry{{10, 40}, "connection.open"},
    Entry{{10, 41}, "connection.open-ok"},
    Entry{{10, 50}, "connection.close"},
    Entry{{10, 51}, "connection.close-ok"},
    Entry{{10, 60}, "connection.blocked"},
    Entry{{10, 61}, "connection.unblocked"},
    Entry{{10, 70}, "connection.update-secret"},
    Entry{{10, 71}, "connection.update-secret-ok"},
    Entry{{20, 10}, "channel.open"},
    Entry{{20, 11}, "channel.open-ok"},
    Entry{{20, 20}, "channel.flow"},
    Entry{{20, 21}, "channel.flow-ok"},
    Entry{{20, 40}, "channel.close"},
    Entry{{20, 41}, "channel.close-ok"},
    Entry{{30, 10}, "access.request"},
    Entry{{30, 11}, "access.request-ok"},
    Entry{{40, 10}, "exchange.declare"},
    Entry{{40, 11}, "exchange.declare-ok"},
    Entry{{40, 20}, "exchange.delete"},
    Entry{{40, 21}, "exchange.delete-ok"},
    Entry{{40, 30}, "exchange.bind"},
    Entry{{40, 31}, "exchange.bind-ok"},
    Entry{{40, 40}, "exchange.unbind"},
    Entry{{40, 51}, "exchange.unbind-ok"},
    Entry{{50, 10}, "queue.declare"},
    Entry{{50, 11}, "queue.declare-ok"},
    Entry{{50, 20}, "queue.bind"},
    Entry{{50, 21}, "queue.bind-ok"},
    Entry{{50, 30}, "queue.purge"},
    Entry{{50, 31}, "queue.purge-ok"},
    Entry{{50, 40}, "queue.delete"},
    Entry{{50, 41}, "queue.delete-ok"},
    Entry{{50, 50}, "queue.unbind"},
    Entry{{50, 51}, "queue.unbind-ok"},
    Entry{{60, 10}, "basic.qos"},
    Entry{{60, 11}, "basic.qos-ok"},
    Entry{{60, 20}, "basic.consume"},
    Entry{{60, 21}, "basic.consume-ok"},
    Entry{{60, 30}, "basic.cancel"},
    Entry{{60, 31}, "basic.cancel-ok"},
    Entry{{60, 40}, "basic.publish"},
    Entry{{60, 50}, "basic.return"},
    Entry{{60, 60}, "basic.deliver"},
    Entry{{60, 70}, "basic.get"},
    Entry{{60, 71}, "basic.get-ok"},
    Entry{{60, 72}, "basic.get-empty"},
    Entry{{60, 80}, "basic.ack"},
    Entry{{60, 90}, "basic.reject"},
    Entry{{60, 100}, "basic.recover-async"},
    Entry{{60, 110}, "basic.recover"},
    Entry{{60, 111}, "basic.recover-ok"},
    Entry{{60, 120}, "basic.nack"},
    Entry{{85, 10}, "confirm.select"},
    Entry{{85, 11}, "confirm.select-ok"},
    Entry{{90, 10}, "tx.select"},
    Entry{{90, 11}, "tx.select-ok"},
    Entry{{90, 20}, "tx.commit"},
    Entry{{90, 21}, "tx.commit-ok"},
    Entry{{90, 30}, "tx.rollback"},
    Entry{{90, 31}, "tx.rollback-ok"},
};

std::string code_and_text(std::uint16_t code, std::string_view text) {
  return " " + std::to_string(code) + " \"" + std::string(text) + "\"";
}

template <class M>
std::string settle_arguments(std::string_view payload) {
  const auto m = wire::decode_method<M>(payload);
  if (!m) return " (malformed)";
  return " tag " + std::to_string(m->delivery_tag) + (m->multiple ? " multiple" : "");
}

}  // namespace

std::string method_name(wire::MethodId id) {
  for (const auto& [known, name] : kNames)
    if (known == id) return std::string(name);
  return "class " + std::to_string(id.class_id) + " method " + std::to_string(id.method_id);
}

std::string describe_method(std::string_view payload) {
  const auto id = wire::peek_method_id(payload);
  if (!id) return "a method frame too short for its ids";
  std::string text = method_name(*id);
  if (*id == wire::connection::Close::kId) {
    if (const auto m = wire::decode_method<wire::connection::Close>(payload))
      text += code_and_text(m->reply_code, m->reply_text);
  } else if (*id == wire::channel::Close::kId) {
    if (const auto m = wire::decode_method<wire::channel::Close>(payload))
      text += code_and_text(m->reply_code, m->reply_text);
  } else if (*id == wire::basic::Return::kId) {
    if (const auto m = wire::decode_method<wire::basic::Return>(payload))
      text += code_and_text(m->reply_code, m->reply_text);
  } else if (*id == wire::basic::Ack::kId) {
    text += settle_arguments<wire::basic::Ack>(payload);
  } else if (*id == wire::basic::Nack::kId) {
    text += settle_arguments<wire::basic::Nack>(payload);
  }
  return text;
}

}  // namespace stoat::test
