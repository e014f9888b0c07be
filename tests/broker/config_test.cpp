#include "broker/config.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <map>
#include <sstream>

#include "broker/version.hpp"

namespace stoat::broker {
namespace {

CommandLine command_line(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv{"stoatd"};
  argv.insert(argv.end(), arguments);
  return read_command_line(static_cast<int>(argv.size()), argv.data());
}

// What the error says; empty: there was none.
template <class Call>
std::string mistake(Call call) {
  try {
    call();
    return {};
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::string toml_mistake(std::string_view text) {
  return mistake([&] {
    Config config;
    apply_toml(config, text, "stoat.toml");
  });
}

class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text) { std::ofstream(path) << text; }
  ~ConfigFile() { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "stoat_config_test.toml";
};

TEST(Config, DefaultsAreForOneMachine) {
  const Config config = command_line({}).config;
  EXPECT_EQ(config.bind, "127.0.0.1");
  EXPECT_EQ(config.amqp_port, 5672);
  EXPECT_EQ(config.admin_port, 15672);
  EXPECT_EQ(config.memory_alarm_fraction, 0.6);
  EXPECT_EQ(config.disk_alarm_free_mb, 500u);
  EXPECT_EQ(config.frame_max, 131072u);
  EXPECT_EQ(config.channel_max, 2047);
  EXPECT_EQ(config.heartbeat_s, 60);
  EXPECT_EQ(config.max_message_bytes, 134217728u);
}

TEST(Config, AFileSetsEveryKey) {
  Config config;
  apply_toml(config, R"(
    bind = "::1"
    amqp_port = 0
    admin_port = 65535
    workers = 2
    log_level = "debug"
    data_dir = "/var/lib/stoat"
    load_definitions = "definitions.json"
    frame_max = 4096
    channel_max = 1
    heartbeat_s = 0
    max_message_bytes = 1048576
    max_connections = 10
    handshake_timeout_ms = 500
    login_failure_delay_ms = 0
    [memory]
    alarm_fraction = 0.25
    [disk]
    alarm_free_mb = 0
  )",
             "stoat.toml");
  EXPECT_EQ(config.bind, "::1");
  EXPECT_EQ(config.amqp_port, 0);
  EXPECT_EQ(config.admin_port, 65535);
  EXPECT_EQ(config.workers, 2u);
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.data_dir, "/var/lib/stoat");
  EXPECT_EQ(config.load_definitions, "definitions.json");
  EXPECT_EQ(config.frame_max, 4096u);
  EXPECT_EQ(config.channel_max, 1);
  EXPECT_EQ(config.heartbeat_s, 0);
  EXPECT_EQ(config.max_message_bytes, 1048576u);
  EXPECT_EQ(config.max_connections, 10u);
  EXPECT_EQ(config.handshake_timeout_ms, 500u);
  EXPECT_EQ(config.login_failure_delay_ms, 0u);
  EXPECT_EQ(config.memory_alarm_fraction, 0.25);
  EXPECT_EQ(config.disk_alarm_free_mb, 0u);
}

TEST(Config, AWholeNumberDoesForAFraction) {
  Config config;
  apply_toml(config, "memory.alarm_fraction = 1", "stoat.toml");
  EXPECT_EQ(config.memory_alarm_fraction, 1.0);
}

TEST(Config, MistakesNameLineKeyValueAndRange) {
  struct {
    std::string toml;
    std::string text;
  } const cases[] = {
      {"a_port = 1", "stoat.toml, line 1: unknown key 'a_port'"},
      {"\n[memory]\nalarm = 1", "stoat.toml, line 3: unknown key 'memory.alarm'"},
      {"[network.tcp]\nnodelay = true", "stoat.toml, line 1: unknown key 'network'"},
      {"bind.address = \"::\"",
       "stoat.toml, line 1: bind must be an IPv4 or IPv6 address, not a table"},
      {"memory = 1", "stoat.toml, line 1: unknown key 'memory'"},
      {"salvage = true", "stoat.toml, line 1: unknown key 'salvage'"},
      {"amqp_port = 65536",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not 65536"},
      {"amqp_port = -1",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not -1"},
      {"amqp_port = \"5672\"",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not '5672'"},
      {"amqp_port = 5672.0",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not 5672"},
      {"amqp_port = [5672]",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not a list"},
      {"amqp_port = 2020-01-01",
       "stoat.toml, line 1: amqp_port must be a whole number from 0 to 65535, not a date or time"},
      {"bind = \"localhost\"",
       "stoat.toml, line 1: bind must be an IPv4 or IPv6 address, not 'localhost'"},
      {"bind = true", "stoat.toml, line 1: bind must be an IPv4 or IPv6 address, not true"},
      {"log_level = \"loud\"",
       "stoat.toml, line 1: log_level must be trace, debug, info, warn, error or off, not 'loud'"},
      {"data_dir = \"\"", "stoat.toml, line 1: data_dir must be a path, not ''"},
      {"memory.alarm_fraction = 1.5",
       "stoat.toml, line 1: memory.alarm_fraction must be a number from 0.01 to 1, not 1.5"},
      {"memory.alarm_fraction = nan",
       "stoat.toml, line 1: memory.alarm_fraction must be a number from 0.01 to 1, not nan"},
      {"frame_max = 4095",
       "stoat.toml, line 1: frame_max must be a whole number from 4096 to 16777216, not 4095"},
  };
  for (const auto& c : cases) EXPECT_EQ(toml_mistake(c.toml), c.text) << c.toml;
  EXPECT_TRUE(toml_mistake("bind = ").starts_with("stoat.toml, line 1: "));
  EXPECT_TRUE(toml_mistake("workers = 1\nworkers = 2").starts_with("stoat.toml, line 2: "));
}

TEST(Config, AFlagBeatsTheFile) {
  const ConfigFile file("amqp_port = 1111\nadmin_port = 2222\n");
  const Config config = command_line({"--amqp-port", "3333", "--config", file.path.c_str()}).config;
  EXPECT_EQ(config.amqp_port, 3333);
  EXPECT_EQ(config.admin_port, 2222);
}

TEST(Config, EveryFlag) {
  const CommandLine line =
      command_line({"--data-dir", "d", "--bind", "0.0.0.0", "--amqp-port", "0", "--admin-port=1",
                    "--workers", "3", "--log-level", "warn", "--salvage"});
  EXPECT_FALSE(line.print);
  EXPECT_EQ(line.config.data_dir, "d");
  EXPECT_EQ(line.config.bind, "0.0.0.0");
  EXPECT_EQ(line.config.amqp_port, 0);
  EXPECT_EQ(line.config.admin_port, 1);
  EXPECT_EQ(line.config.workers, 3u);
  EXPECT_EQ(line.config.log_level, "warn");
  EXPECT_TRUE(line.config.salvage);
  EXPECT_FALSE(line.config.check);
  EXPECT_TRUE(command_line({"--check"}).config.check);
}

TEST(Config, MistakesOnTheCommandLineAreOneLine) {
  EXPECT_EQ(mistake([] {
              command_line({"--check", "--salvage"});
            }),
            "--check and --salvage exclude each other");
  EXPECT_EQ(mistake([] {
              command_line({"--amqp-port", "99999"});
            }),
            "--amqp-port must be a whole number from 0 to 65535, not 99999");
  EXPECT_EQ(mistake([] {
              command_line({"--amqp-port", "12x"});
            }),
            "--amqp-port must be a whole number from 0 to 65535, not '12x'");
  EXPECT_EQ(mistake([] {
              command_line({"--bind", "here"});
            }),
            "--bind must be an IPv4 or IPv6 address, not 'here'");
  EXPECT_EQ(mistake([] {
              command_line({"--config", "no-such-file.toml"});
            }),
            "configuration file 'no-such-file.toml' cannot be read: No such file or directory");
  for (const auto& arguments : std::vector<std::vector<const char*>>{
           {"--port", "1"}, {"extra"}, {"--bind"}, {"--workers", "1", "--workers", "2"}}) {
    std::vector<const char*> argv{"stoatd"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const std::string text =
        mistake([&] { read_command_line(static_cast<int>(argv.size()), argv.data()); });
    EXPECT_NE(text, "") << arguments[0];
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(Config, HelpAndVersionArePrinted) {
  EXPECT_EQ(command_line({"--version"}).print, "stoatd " + std::string(version()));
  const std::string help = command_line({"--help"}).print.value_or("");
  for (const char* flag : {"--config", "--data-dir", "--bind", "--amqp-port", "--admin-port",
                           "--workers", "--log-level", "--check", "--salvage", "--version"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
}

// docs/configuration.md holds one table row for each key: | `key` | unit | `default` | range | … |
TEST(Config, EveryKeyIsDocumentedAsItIs) {
  std::ifstream page(STOAT_SOURCE_DIR "/docs/configuration.md");
  ASSERT_TRUE(page);
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `") || line.starts_with("| `--")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
      cell.erase(0, cell.find_first_not_of(" `"));
      cell.erase(cell.find_last_not_of(" `") + 1);
      cells.push_back(cell);
    }
    ASSERT_GE(cells.size(), 5u) << line;
    EXPECT_TRUE(rows.emplace(cells[0], cells).second) << line;
  }
  for (const ConfigKey& key : config_keys()) {
    const auto row = rows.find(key.name);
    if (row == rows.end()) {
      ADD_FAILURE() << key.name << " is not documented";
      continue;
    }
    EXPECT_EQ(row->second[1], key.unit) << key.name;
    EXPECT_EQ(row->second[2], key.default_value) << key.name;
    EXPECT_EQ(row->second[3], key.range) << key.name;
    EXPECT_NE(row->second[4], "") << key.name;
    rows.erase(row);
  }
  for (const auto& [name, cells] : rows) ADD_FAILURE() << name << " is documented, but no key";
}

}  // namespace
}  // namespace stoat::broker
