#include "broker/config.hpp"

// Here and nowhere else: both libraries are slow to compile.
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <system_error>

#include "broker/version.hpp"
#include "broker/whole_file.hpp"

namespace stoat::broker {
namespace {

struct Flag {
  std::string name;
  std::string key;
  std::string placeholder;
  std::string help;
};

const Flag kFlags[] = {
    {"--data-dir", "data_dir", "DIR", "Folder of the durable state"},
    {"--bind", "bind", "ADDR", "Address to listen on"},
    {"--amqp-port", "amqp_port", "N", "AMQP port; 0: any free one"},
    {"--admin-port", "admin_port", "N", "Admin port (HTTP and WebSocket); 0: any free one"},
    {"--workers", "workers", "N", "Worker threads"},
    {"--log-level", "log_level", "L", "trace, debug, info, warn, error or off"},
};

// nullopt for kinds that no key takes.
std::optional<ConfigValue> value_of(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return ConfigValue(flag->get());
  if (const auto* integer = node.as_integer()) return ConfigValue(integer->get());
  if (const auto* real = node.as_floating_point()) return ConfigValue(real->get());
  if (const auto* text = node.as_string()) return ConfigValue(text->get());
  return std::nullopt;
}

std::string_view name_of_kind(const toml::node& node) {
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  return "a date or time";
}

std::string place(std::string_view file, const toml::source_region& source) {
  return std::string(file) + ", line " + std::to_string(source.begin.line) + ": ";
}

bool begins_a_key(const std::string& name) {
  const auto& keys = config_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const ConfigKey& key) { return key.name.starts_with(name + "."); });
}

// `prefix` is empty or ends with a dot. Recursion ends with the depth of our keys: a table that
// begins none of them is refused.
void apply_table(Config& config, const toml::table& table, const std::string& prefix,
                 std::string_view file) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const std::string at = place(file, key.source());
    if (node.is_table() && begins_a_key(name)) {
      apply_table(config, *node.as_table(), name + ".", file);
      continue;
    }
    const ConfigKey* known = find_config_key(name);
    if (known == nullptr) throw ConfigError(at + "unknown key '" + name + "'");
    const auto value = value_of(node);
    if (!value) {
      throw ConfigError(at + name + " must be " + known->range + ", not " +
                        std::string(name_of_kind(node)));
    }
    set_config_value(config, name, *value, at + name);
  }
}

std::string read_file(const std::string& name) {
  try {
    return read_whole_file(name);
  } catch (const std::system_error& error) {
    throw ConfigError("configuration file '" + name +
                      "' cannot be read: " + error.code().message());
  }
}

}  // namespace

void apply_toml(Config& config, std::string_view text, std::string_view name) {
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw ConfigError(place(name, error.source()) + std::string(error.description()));
  }
  apply_table(config, table, "", name);
}

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app("StoatMQ, an AMQP 0-9-1 message broker", "stoatd");
  std::string file;
  bool salvage = false;
  bool check = false;
  std::map<std::string, std::string> given;
  app.add_option("--config", file, "Configuration file (TOML); flags beat it")->type_name("FILE");
  for (const Flag& flag : kFlags) {
    app.add_option_function<std::string>(
           flag.name, [&given, &flag](const std::string& value) { given[flag.name] = value; },
           flag.help)
        ->type_name(flag.placeholder);
  }
  app.add_flag("--salvage", salvage, "Open a damaged data folder and keep what can be read");
  app.add_flag("--check", check, "Tell what of the data folder is damaged, and end");
  app.set_version_flag("--version", "stoatd " + std::string(version()));

  CommandLine result;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    help.erase(help.find_last_not_of('\n') + 1);
    result.print = std::move(help);
    return result;
  } catch (const CLI::CallForVersion& asked) {
    result.print = asked.what();
    return result;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(error.what());
  }

  if (!file.empty()) apply_toml(result.config, read_file(file), file);
  for (const Flag& flag : kFlags) {
    if (const auto value = given.find(flag.name); value != given.end()) {
      set_config_value(result.config, flag.key, parse_config_text(flag.key, value->second),
                       flag.name);
    }
  }
  if (salvage && check) throw ConfigError("--check and --salvage exclude each other");
  result.config.salvage = salvage;
  result.config.check = check;
  return result;
}

}  // namespace stoat::broker
