#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stoat::broker {

// Everything that can be set, with its default. docs/configuration.md has unit, range and meaning
// of each; the names here are the keys there, with an underscore for the dot.
struct Config {
  std::string bind = "127.0.0.1";  // an IPv4 or IPv6 address
  std::uint16_t amqp_port = 5672;  // 0: any free one
  std::uint16_t admin_port = 15672;
  std::uint32_t workers = 1;
  std::string log_level = "info";
  std::filesystem::path data_dir = "stoat-data";
  std::filesystem::path load_definitions;  // empty: none
  bool salvage = false;                    // by flag only
  bool check = false;                      // by flag only: look at data_dir and end

  std::uint32_t frame_max = 131072;  // bytes
  std::uint16_t channel_max = 2047;
  std::uint16_t heartbeat_s = 60;  // 0: none
  std::uint64_t max_message_bytes = 128u << 20;
  std::uint32_t max_connections = 65535;
  std::uint32_t handshake_timeout_ms = 10'000;
  std::uint32_t login_failure_delay_ms = 3'000;

  double memory_alarm_fraction = 0.6;      // of the machine's memory
  std::uint64_t disk_alarm_free_mb = 500;  // 0: no alarm
};

// A setting that cannot be used. what() is one line for the user; the process ends with status 2.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the command line asks for.
struct CommandLine {
  Config config;
  // --help or --version: print this, and a line break, and end with status 0. The config is not to
  // be used then.
  std::optional<std::string> print;
};

// Defaults, then the file that --config names, then flags. Throws ConfigError.
CommandLine read_command_line(int argc, const char* const* argv);

// Applies a TOML document; `name` stands for it in errors. Throws ConfigError.
void apply_toml(Config& config, std::string_view toml, std::string_view name);

// One key of the configuration file, as documented.
struct ConfigKey {
  std::string name;  // "memory.alarm_fraction"
  std::string unit;  // "" where there is none
  std::string default_value;
  std::string range;
};
const std::vector<ConfigKey>& config_keys();
const ConfigKey* find_config_key(std::string_view name);  // nullptr: there is none

using ConfigValue = std::variant<bool, std::int64_t, double, std::string>;
// Sets one key. Throws ConfigError, which calls the setting `shown_as` and names value and range.
void set_config_value(Config& config, std::string_view key, const ConfigValue& value,
                      std::string_view shown_as);
// The value that a flag's text stands for: a number where the key takes one and the text is one.
ConfigValue parse_config_text(std::string_view key, const std::string& text);

}  // namespace stoat::broker
