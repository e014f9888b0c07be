#include "broker/definitions.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "broker/password.hpp"

namespace stoat::broker {
namespace {

Topology first_start() {
  Topology topology;
  topology.set_defaults();
  return topology;
}

Definitions parse(std::string_view json) {
  return parse_definitions(json, first_start());
}

// As RabbitMQ's management plug-in exports it.
constexpr std::string_view kExported = R"({
  "rabbit_version": "3.10.8", "rabbitmq_version": "3.10.8", "product_name": "RabbitMQ",
  "product_version": "3.10.8",
  "users": [
    {"name": "app", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
     "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["monitoring"], "limits": {}},
    {"name": "old", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha512",
     "tags": "administrator, management"}],
  "vhosts": [{"name": "/"}, {"name": "shop", "description": "", "tags": []}],
  "permissions": [{"user": "app", "vhost": "shop", "configure": "^app", "write": ".*", "read": ""}],
  "topic_permissions": [],
  "parameters": [],
  "global_parameters": [{"name": "internal_cluster_id", "value": "rabbitmq-cluster-id-x"}],
  "policies": [{"vhost": "/", "name": "ha", "pattern": ".*", "apply-to": "all",
                "definition": {"ha-mode": "all"}, "priority": 0}],
  "queues": [
    {"name": "orders", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-max-length": 1000, "x-queue-type": "classic"}},
    {"name": "tmp", "vhost": "/", "durable": false, "auto_delete": true, "arguments": {}}],
  "exchanges": [
    {"name": "events", "vhost": "shop", "type": "topic", "durable": true, "auto_delete": false,
     "internal": false, "arguments": {"alternate-exchange": "amq.fanout"}}],
  "bindings": [
    {"source": "events", "vhost": "shop", "destination": "orders", "destination_type": "queue",
     "routing_key": "order.*", "arguments": {}},
    {"source": "events", "vhost": "shop", "destination": "orders", "destination_type": "queue",
     "routing_key": "order.*", "arguments": []},
    {"source": "events", "vhost": "shop", "destination": "amq.headers",
     "destination_type": "exchange", "routing_key": "", "arguments": {}},
    {"source": "amq.headers", "vhost": "shop", "destination": "orders", "destination_type": "queue",
     "routing_key": "", "arguments": {"x-match": "all", "n": 1}}]
})";

TEST(Definitions, TakesWhatRabbitMqExports) {
  const Definitions d = parse(kExported);
  ASSERT_EQ(d.vhosts.size(), 1u);
  EXPECT_EQ(d.vhosts[0].name, "shop");
  ASSERT_EQ(d.users.size(), 2u);
  EXPECT_TRUE(password_matches("test12", d.users[0].password_hash, d.users[0].hashing_algorithm));
  EXPECT_EQ(d.users[0].tags, std::vector<std::string>{"monitoring"});
  EXPECT_EQ(d.users[1].tags, (std::vector<std::string>{"administrator", "management"}));
  ASSERT_EQ(d.permissions.size(), 1u);
  EXPECT_EQ(d.permissions[0].configure, "^app");
  EXPECT_EQ(d.permissions[0].read, "");
  ASSERT_EQ(d.exchanges.size(), 1u);
  EXPECT_EQ(d.exchanges[0].type, "topic");
  EXPECT_EQ(*d.exchanges[0].arguments.find("alternate-exchange")->as_string(), "amq.fanout");
  ASSERT_EQ(d.queues.size(), 2u);
  EXPECT_EQ(d.queues[0].arguments.find("x-max-length")->as_integer(), 1000);
  EXPECT_FALSE(d.queues[1].durable);
  EXPECT_TRUE(d.queues[1].auto_delete);
  ASSERT_EQ(d.bindings.size(), 3u);  // equal ones are one
  EXPECT_EQ(d.bindings[0].routing_key, "order.*");
  EXPECT_EQ(d.bindings[1].destination_kind, DestinationKind::exchange);
  EXPECT_EQ(d.ignored, (std::vector<std::string>{
                           "policy 'ha': policies are not supported",
                           "global parameter 'internal_cluster_id': global parameters are not "
                           "supported"}));
}

TEST(Definitions, WhatIsThereAlreadyStays) {
  Topology existing = first_start();
  existing.add_exchange({"/", "x", "topic", true, false, false, {}});
  QueueDef queue;
  queue.spec = {QueueId(1), "/", "q", true, false, false, {{"x-max-length", std::int8_t{5}}}};
  existing.add_queue(queue);
  existing.add_binding({"/", "x", DestinationKind::queue, "q", "k", {}});
  const Definitions d = parse_definitions(R"({
    "exchanges": [{"name": "x", "vhost": "/", "type": "fanout", "durable": true}],
    "queues": [{"name": "q", "vhost": "/", "durable": true, "arguments": {"x-max-length": 5}}],
    "bindings": [{"source": "x", "vhost": "/", "destination": "q", "destination_type": "queue",
                  "routing_key": "k", "arguments": {}},
                 {"source": "x", "vhost": "/", "destination": "q", "destination_type": "queue",
                  "routing_key": "new", "arguments": {}}]})",
                                          existing);
  EXPECT_TRUE(d.exchanges.empty());
  EXPECT_TRUE(d.queues.empty());
  ASSERT_EQ(d.bindings.size(), 1u);
  EXPECT_EQ(d.bindings[0].routing_key, "new");
  EXPECT_EQ(d.ignored,
            std::vector<std::string>{
                "exchange 'x' in vhost '/': exists and is different; it stays as it is"});
}

TEST(Definitions, ImplicitThingsAreLeftOut) {
  const Definitions d = parse(R"({
    "surprise": [],
    "exchanges": [{"name": "", "vhost": "/", "type": "direct"},
                  {"name": "amq.topic", "vhost": "/", "type": "topic"}],
    "queues": [{"name": "q", "vhost": "/"}],
    "bindings": [{"source": "", "vhost": "/", "destination": "q", "destination_type": "queue",
                  "routing_key": "q"}]})");
  EXPECT_TRUE(d.exchanges.empty());
  EXPECT_TRUE(d.bindings.empty());
  EXPECT_EQ(d.queues.size(), 1u);
  EXPECT_EQ(d.ignored, (std::vector<std::string>{
                           "exchange 'amq.topic' in vhost '/': exchanges of this name are the "
                           "broker's own",
                           "member 'surprise': unknown"}));
}

TEST(Definitions, APlainPasswordIsHashed) {
  const Definitions d = parse(R"({"users": [{"name": "u", "password": "pw", "tags": []}]})");
  ASSERT_EQ(d.users.size(), 1u);
  EXPECT_TRUE(password_matches("pw", d.users[0].password_hash, d.users[0].hashing_algorithm));
}

TEST(Definitions, OneMistakeRefusesAllAndIsNamed) {
  struct {
    std::string json;
    std::string text;
  } const cases[] = {
      {"{", "line 1, column 2: "},
      {"[]", "the document must be an object"},
      {R"({"queues": {}})", "the document: member 'queues' must be a list"},
      {R"({"queues": [1]})", "a queue must be an object"},
      {R"({"queues": [{"vhost": "/"}]})", "a queue: member 'name' is missing"},
      {R"({"queues": [{"name": "q"}]})", "a queue: member 'vhost' is missing"},
      {R"({"queues": [{"name": "q", "vhost": "v"}]})", "a queue: vhost 'v' does not exist"},
      {R"({"queues": [{"name": "", "vhost": "/"}]})", "a queue: member 'name' must not be empty"},
      {R"({"queues": [{"name": "a\nb", "vhost": "/"}]})", "must not contain line breaks"},
      {R"({"queues": [{"name": "q", "vhost": "/"}, {"name": "q", "vhost": "/"}]})",
       "queue 'q' in vhost '/' appears twice"},
      {R"({"queues": [{"name": "q", "vhost": "/", "durable": "yes"}]})",
       "queue 'q' in vhost '/': member 'durable' must be true or false"},
      {R"({"queues": [{"name": "q", "vhost": "/", "arguments": {"x-expires": 0}}]})",
       "invalid arg 'x-expires' for queue 'q' in vhost '/': "},
      {R"({"queues": [{"name": "q", "vhost": "/", "arguments": {"n": 18446744073709551615}}]})",
       "queue 'q' in vhost '/': 'arguments'"},
      {R"({"exchanges": [{"name": "x", "vhost": "/", "type": "x-random"}]})",
       "exchange 'x' in vhost '/': exchange type 'x-random' is not supported"},
      {R"({"exchanges": [{"name": "x", "vhost": "/"}]})",
       "exchange 'x' in vhost '/': member 'type' is missing"},
      {R"({"bindings": [{"source": "x", "vhost": "/", "destination": "q",
                         "destination_type": "queue"}]})",
       "binding from exchange 'x' to queue 'q' in vhost '/': the exchange does not exist"},
      {R"({"bindings": [{"source": "amq.topic", "vhost": "/", "destination": "q",
                         "destination_type": "queue"}]})",
       "binding from exchange 'amq.topic' to queue 'q' in vhost '/': the queue does not exist"},
      {R"({"bindings": [{"source": "amq.topic", "vhost": "/", "destination": "q",
                         "destination_type": "topic"}]})",
       "must be 'queue' or 'exchange'"},
      {R"({"bindings": [{"source": "amq.headers", "vhost": "/", "destination": "amq.fanout",
                         "destination_type": "exchange", "arguments": {"x-match": "most"}}]})",
       "binding from exchange 'amq.headers' to exchange 'amq.fanout' in vhost '/': "},
      {R"({"users": [{"name": "u", "password_hash": "AAAA"}]})",
       "user 'u': the password hash is not base64"},
      {R"({"users": [{"name": "u", "password_hash": "",
                      "hashing_algorithm": "rabbit_password_hashing_md5"}]})",
       "user 'u': hashing algorithm 'rabbit_password_hashing_md5' is not supported"},
      {R"({"users": [{"name": "u", "tags": []}]})", "user 'u': member 'password_hash' is missing"},
      {R"({"users": [{"name": "u", "password_hash": "", "tags": [1]}]})",
       "user 'u': member 'tags' must be a list of strings"},
      {R"({"permissions": [{"user": "nobody", "vhost": "/", "configure": "", "write": "",
                            "read": ""}]})",
       "permission of user 'nobody' on vhost '/': the user does not exist"},
      {R"({"permissions": [{"user": "guest", "vhost": "/", "configure": "(", "write": "",
                            "read": ""}]})",
       "permission of user 'guest' on vhost '/': '(' is no regular expression"},
      {R"({"permissions": [{"user": "guest", "vhost": "/", "configure": "", "write": ""}]})",
       "permission of user 'guest' on vhost '/': member 'read' is missing"},
      {R"({"topic_permissions": [{"user": "guest"}]})", "topic_permissions are not supported"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.json);
    try {
      parse(c.json);
      ADD_FAILURE() << "was taken";
    } catch (const DefinitionsError& error) {
      EXPECT_NE(std::string(error.what()).find(c.text), std::string::npos) << error.what();
    }
  }
  const std::string long_name(256, 'n');
  EXPECT_THROW(parse(R"({"vhosts": [{"name": ")" + long_name + "\"}]}"), DefinitionsError);
}

TEST(Definitions, AFileIsNamedInItsErrors) {
  const auto missing = std::filesystem::path("no-such-folder") / "definitions.json";
  try {
    read_definitions(missing, first_start());
    ADD_FAILURE() << "was read";
  } catch (const DefinitionsError& error) {
    EXPECT_EQ(std::string(error.what()),
              "definitions file 'no-such-folder/definitions.json' "
              "cannot be read: No such file or directory");
  }
  const std::string file = testing::TempDir() + "stoat_definitions_test.json";
  std::ofstream(file) << R"({"vhosts": [{"name": "v"}]})";
  EXPECT_EQ(read_definitions(file, first_start()).vhosts.size(), 1u);
  std::ofstream(file) << "{]";
  EXPECT_THROW(read_definitions(file, first_start()), DefinitionsError);
  std::remove(file.c_str());
}

// Nothing is wrong with reading these, or something other than a missing file is.
TEST(Definitions, AnEmptyFileAndAFolderAreSaidToBeThat) {
  const std::string empty = testing::TempDir() + "stoat_empty_definitions.json";
  std::ofstream(empty) << "";
  const struct {
    std::string file;
    const char* text;
  } cases[] = {{empty, ": line 1, column 1: incomplete JSON"},
               {testing::TempDir(), "cannot be read: Is a directory"}};
  for (const auto& c : cases) {
    try {
      read_definitions(c.file, first_start());
      ADD_FAILURE() << c.file << " was read";
    } catch (const DefinitionsError& error) {
      EXPECT_NE(std::string(error.what()).find(c.text), std::string::npos) << error.what();
    }
  }
  std::remove(empty.c_str());
}

}  // namespace
}  // namespace stoat::broker
