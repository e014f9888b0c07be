#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <sstream>

#include "broker/config.hpp"

namespace stoat::broker {
namespace {

struct Whole {
  std::int64_t min;
  std::int64_t max;
  std::function<std::int64_t(const Config&)> get;
  std::function<void(Config&, std::int64_t)> set;
};
struct Real {
  double min;
  double max;
  std::function<double(const Config&)> get;
  std::function<void(Config&, double)> set;
};
struct Text {
  std::string range;
  bool (*accepts)(const std::string&);
  std::function<std::string(const Config&)> get;
  std::function<void(Config&, const std::string&)> set;
};

struct Key {
  std::string_view name;
  std::string_view unit;
  std::variant<Whole, Real, Text> kind;
};

template <class Member>
Whole whole(Member Config::*member, std::int64_t min, std::int64_t max) {
  return {min, max, [member](const Config& c) { return static_cast<std::int64_t>(c.*member); },
          [member](Config& c, std::int64_t v) { c.*member = static_cast<Member>(v); }};
}

Real real(double Config::*member, double min, double max) {
  return {min, max, [member](const Config& c) { return c.*member; },
          [member](Config& c, double v) { c.*member = v; }};
}

Text text(std::string Config::*member, std::string range, bool (*accepts)(const std::string&)) {
  return {std::move(range), accepts, [member](const Config& c) { return c.*member; },
          [member](Config& c, const std::string& v) { c.*member = v; }};
}

Text path(std::filesystem::path Config::*member, std::string range,
          bool (*accepts)(const std::string&)) {
  return {std::move(range), accepts, [member](const Config& c) { return (c.*member).string(); },
          [member](Config& c, const std::string& v) { c.*member = v; }};
}

bool is_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warn", "error", "off"};

bool is_log_level(const std::string& text) {
  return std::find(std::begin(kLogLevels), std::end(kLogLevels), text) != std::end(kLogLevels);
}

bool is_path(const std::string& text) {
  return !text.empty() && text.find('\0') == std::string::npos;
}

bool is_path_or_empty(const std::string& text) {
  return text.empty() || is_path(text);
}

constexpr std::int64_t kMaxPort = 65535;

const std::vector<Key>& keys() {
  static const std::vector<Key> all{
      {"bind", "", text(&Config::bind, "an IPv4 or IPv6 address", is_address)},
      {"amqp_port", "", whole(&Config::amqp_port, 0, kMaxPort)},
      {"admin_port", "", whole(&Config::admin_port, 0, kMaxPort)},
      {"workers", "threads", whole(&Config::workers, 1, 256)},
      {"log_level", "",
       text(&Config::log_level, "trace, debug, info, warn, error or off", is_log_level)},
      {"data_dir", "", path(&Config::data_dir, "a path", is_path)},
      {"load_definitions", "", path(&Config::load_definitions, "a path", is_path_or_empty)},
      {"frame_max", "bytes", whole(&Config::frame_max, 4096, 16 << 20)},
      {"channel_max", "channels", whole(&Config::channel_max, 1, 65535)},
      {"heartbeat_s", "s", whole(&Config::heartbeat_s, 0, 65535)},
      {"max_message_bytes", "bytes", whole(&Config::max_message_bytes, 1, 512 << 20)},
      {"max_connections", "connections", whole(&Config::max_connections, 1, 1'000'000)},
      {"handshake_timeout_ms", "ms", whole(&Config::handshake_timeout_ms, 100, 600'000)},
      {"login_failure_delay_ms", "ms", whole(&Config::login_failure_delay_ms, 0, 60'000)},
      {"memory.alarm_fraction", "of memory", real(&Config::memory_alarm_fraction, 0.01, 1)},
      {"disk.alarm_free_mb", "MB", whole(&Config::disk_alarm_free_mb, 0, 1'000'000'000)},
  };
  return all;
}

std::string show(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

std::string show(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return show(*number);
  return "'" + std::get<std::string>(value) + "'";
}

std::string range_of(const Whole& key) {
  return "a whole number from " + std::to_string(key.min) + " to " + std::to_string(key.max);
}
std::string range_of(const Real& key) {
  return "a number from " + show(key.min) + " to " + show(key.max);
}
std::string range_of(const Text& key) {
  return key.range;
}

// Each sets the value if it is in range, else answers false.
bool set(Config& config, const Whole& key, const ConfigValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < key.min || *number > key.max) return false;
  key.set(config, *number);
  return true;
}

bool set(Config& config, const Real& key, const ConfigValue& value) {
  std::optional<double> number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*integer);
  }
  if (const auto* precise = std::get_if<double>(&value)) number = *precise;
  // Put so that NaN is out of range.
  if (!number || !(*number >= key.min && *number <= key.max)) return false;
  key.set(config, *number);
  return true;
}

bool set(Config& config, const Text& key, const ConfigValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !key.accepts(*text)) return false;
  key.set(config, *text);
  return true;
}

std::string default_of(const Whole& key) {
  return std::to_string(key.get(Config{}));
}
std::string default_of(const Real& key) {
  return show(key.get(Config{}));
}
std::string default_of(const Text& key) {
  return key.get(Config{});
}

const Key* find(std::string_view name) {
  const auto found = std::find_if(keys().begin(), keys().end(),
                                  [name](const Key& key) { return key.name == name; });
  return found == keys().end() ? nullptr : &*found;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> documented = [] {
    std::vector<ConfigKey> list;
    for (const Key& key : keys()) {
      std::visit(
          [&](const auto& kind) {
            list.push_back(
                {std::string(key.name), std::string(key.unit), default_of(kind), range_of(kind)});
          },
          key.kind);
    }
    return list;
  }();
  return documented;
}

const ConfigKey* find_config_key(std::string_view name) {
  const auto& all = config_keys();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const ConfigKey& key) { return key.name == name; });
  return found == all.end() ? nullptr : &*found;
}

ConfigValue parse_config_text(std::string_view name, const std::string& text) {
  const Key* key = find(name);
  if (key != nullptr && std::holds_alternative<Whole>(key->kind)) {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return text;
}

void set_config_value(Config& config, std::string_view name, const ConfigValue& value,
                      std::string_view shown_as) {
  const Key* key = find(name);
  if (key == nullptr) throw ConfigError("unknown key '" + std::string(name) + "'");
  std::visit(
      [&](const auto& kind) {
        if (set(config, kind, value)) return;
        throw ConfigError(std::string(shown_as) + " must be " + range_of(kind) + ", not " +
                          show(value));
      },
      key->kind);
}

}  // namespace stoat::broker
