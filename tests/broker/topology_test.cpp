#include "broker/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "broker/password.hpp"

namespace stoat::broker {
namespace {

ExchangeDef exchange(const std::string& name, bool durable = true, const std::string& vhost = "/") {
  return {vhost, name, "topic", durable, false, false, {}};
}

QueueDef queue(std::uint64_t id, const std::string& name, bool durable = true,
               bool exclusive = false, const std::string& vhost = "/") {
  QueueDef def;
  def.spec = {.id = QueueId(id),
              .vhost = vhost,
              .name = name,
              .durable = durable,
              .exclusive = exclusive,
              .auto_delete = false,
              .arguments = {}};
  return def;
}

BindingDef binding(const std::string& source, DestinationKind kind, const std::string& destination,
                   const std::string& key = "k", wire::Table arguments = {},
                   const std::string& vhost = "/") {
  return {vhost, source, kind, destination, key, std::move(arguments)};
}

constexpr auto kToQueue = DestinationKind::queue;
constexpr auto kToExchange = DestinationKind::exchange;

std::vector<std::pair<std::string, std::string>> stored(const Topology& topology) {
  std::vector<std::pair<std::string, std::string>> documents;
  for (const Document& document : topology.documents()) {
    documents.emplace_back(document.key, document.json);
  }
  std::sort(documents.begin(), documents.end());
  return documents;
}

TEST(Topology, FirstStartHasVhostGuestAndThePredeclaredExchanges) {
  Topology topology;
  topology.set_defaults();
  ASSERT_TRUE(topology.vhosts().contains("/"));
  const UserDef& guest = topology.users().at("guest");
  EXPECT_TRUE(password_matches("guest", guest.password_hash, guest.hashing_algorithm));
  EXPECT_EQ(guest.tags, std::vector<std::string>{"administrator"});
  EXPECT_EQ(topology.permissions().at({"/", "guest"}).write, ".*");

  struct {
    std::string name;
    std::string type;
    bool internal;
  } const expected[] = {{"amq.direct", "direct", false}, {"amq.fanout", "fanout", false},
                        {"amq.topic", "topic", false},   {"amq.headers", "headers", false},
                        {"amq.match", "headers", false}, {"amq.rabbitmq.trace", "topic", true}};
  EXPECT_EQ(topology.exchanges().size(), std::size(expected));
  for (const auto& e : expected) {
    const ExchangeDef* found = topology.find_exchange("/", e.name);
    ASSERT_NE(found, nullptr) << e.name;
    EXPECT_EQ(found->type, e.type);
    EXPECT_TRUE(found->durable);
    EXPECT_EQ(found->internal, e.internal);
    EXPECT_FALSE(Topology::persists(*found));
  }
}

TEST(Topology, BindingIsIdentifiedByItsEndsKeyAndArgumentsByValue) {
  Topology topology;
  topology.add_vhost("/");
  topology.add_queue(queue(1, "q"));
  topology.add_exchange(exchange("q"));  // the same name as the queue
  topology.add_binding(binding("amq.topic", kToQueue, "q", "a", {{"n", std::int8_t{1}}}));
  topology.add_binding(binding("amq.topic", kToQueue, "q", "a", {{"n", std::int64_t{1}}}));
  EXPECT_EQ(topology.bindings().at({"/", "amq.topic"}).size(), 1u);

  EXPECT_TRUE(
      topology.has_binding(binding("amq.topic", kToQueue, "q", "a", {{"n", std::int16_t{1}}})));
  EXPECT_FALSE(topology.has_binding(binding("amq.topic", kToQueue, "q", "a")));
  EXPECT_FALSE(
      topology.has_binding(binding("amq.topic", kToQueue, "q", "b", {{"n", std::int8_t{1}}})));
  EXPECT_FALSE(
      topology.has_binding(binding("amq.topic", kToExchange, "q", "a", {{"n", std::int8_t{1}}})));
  EXPECT_FALSE(
      topology.has_binding(binding("amq.direct", kToQueue, "q", "a", {{"n", std::int8_t{1}}})));

  EXPECT_FALSE(topology.remove_binding(binding("amq.topic", kToQueue, "q", "a")));
  EXPECT_TRUE(
      topology.remove_binding(binding("amq.topic", kToQueue, "q", "a", {{"n", std::int32_t{1}}})));
  EXPECT_FALSE(topology.is_source("/", "amq.topic"));
  EXPECT_TRUE(topology.bindings().empty());
}

TEST(Topology, NamesWithSlashesDoNotCollide) {
  const Document a = Topology::document(queue(1, "b/c", true, false, "a"));
  const Document b = Topology::document(queue(2, "c", true, false, "a/b"));
  EXPECT_EQ(a.key, "queue/a/b%2Fc");
  EXPECT_EQ(b.key, "queue/a%2Fb/c");
  EXPECT_EQ(Topology::document(queue(1, "100%2F")).key, "queue/%2F/100%252F");
  EXPECT_NE(Topology::document_key(binding("x", kToQueue, "a/b", "c")),
            Topology::document_key(binding("x", kToQueue, "a", "b/c")));
}

TEST(Topology, RemovingAQueueTakesItsBindingsOnly) {
  Topology topology;
  topology.add_vhost("/");
  topology.add_exchange(exchange("x"));
  topology.add_queue(queue(1, "q"));
  topology.add_queue(queue(2, "other"));
  topology.add_binding(binding("x", kToQueue, "q", "1"));
  topology.add_binding(binding("x", kToQueue, "other", "1"));
  topology.add_binding(binding("x", kToQueue, "q", "2"));
  topology.add_binding(binding("amq.topic", kToQueue, "q", "3"));
  EXPECT_EQ(topology.bindings_to("/", kToQueue, "q").size(), 3u);

  const auto removed = topology.remove_queue("/", "q");
  EXPECT_EQ(removed.size(), 3u);
  EXPECT_EQ(topology.find_queue("/", "q"), nullptr);
  EXPECT_EQ(topology.find_queue(QueueId(1)), nullptr);
  EXPECT_FALSE(topology.is_source("/", "amq.topic"));
  ASSERT_EQ(topology.bindings().at({"/", "x"}).size(), 1u);
  EXPECT_EQ(topology.bindings().at({"/", "x"})[0].destination, "other");
  EXPECT_TRUE(topology.remove_queue("/", "q").empty());
}

// Deleting the destination must leave no route that a namesake would inherit.
TEST(Topology, RemovingAnExchangeTakesBindingsOnBothOfItsEnds) {
  Topology topology;
  topology.add_vhost("/");
  topology.add_exchange(exchange("src"));
  topology.add_exchange(exchange("dst"));
  topology.add_queue(queue(1, "q"));
  topology.add_binding(binding("src", kToExchange, "dst"));
  topology.add_binding(binding("dst", kToQueue, "q"));
  topology.add_binding(binding("dst", kToExchange, "dst"));
  topology.add_binding(binding("src", kToQueue, "q"));

  EXPECT_EQ(topology.remove_exchange("/", "dst").size(), 3u);
  topology.add_exchange(exchange("dst"));
  EXPECT_TRUE(topology.bindings_to("/", kToExchange, "dst").empty());
  EXPECT_EQ(topology.bindings_to("/", kToQueue, "q").size(), 1u);
  EXPECT_FALSE(topology.is_source("/", "dst"));
}

TEST(Topology, WhatPersists) {
  Topology topology;
  topology.add_vhost("/");
  topology.add_exchange(exchange("dx"));
  topology.add_exchange(exchange("tx", false));
  topology.add_queue(queue(1, "dq"));
  topology.add_queue(queue(2, "tq", false));
  topology.add_queue(queue(3, "eq", true, true));

  EXPECT_TRUE(topology.persists(*topology.find_queue("/", "dq")));
  EXPECT_FALSE(topology.persists(*topology.find_queue("/", "tq")));
  EXPECT_FALSE(topology.persists(*topology.find_queue("/", "eq")));
  EXPECT_TRUE(topology.persists(*topology.find_exchange("/", "dx")));
  EXPECT_FALSE(topology.persists(*topology.find_exchange("/", "tx")));

  EXPECT_TRUE(topology.persists(binding("dx", kToQueue, "dq")));
  EXPECT_TRUE(topology.persists(binding("amq.topic", kToQueue, "dq")));
  EXPECT_TRUE(topology.persists(binding("dx", kToExchange, "amq.topic")));
  EXPECT_FALSE(topology.persists(binding("tx", kToQueue, "dq")));
  EXPECT_FALSE(topology.persists(binding("dx", kToQueue, "tq")));
  EXPECT_FALSE(topology.persists(binding("dx", kToQueue, "eq")));
  EXPECT_FALSE(topology.persists(binding("dx", kToExchange, "tx")));
  EXPECT_FALSE(topology.persists(binding("missing", kToQueue, "dq")));
}

TEST(Topology, ComesBackFromItsDocumentsInAnyOrder) {
  Topology topology;
  topology.set_defaults();
  topology.add_vhost("a/b");
  topology.add_user({"u", "", "rabbit_password_hashing_sha512", {"monitoring", "management"}});
  topology.add_permission({"u", "a/b", "", "^w", "r$"});
  topology.add_exchange({"a/b",
                         "x",
                         "headers",
                         true,
                         true,
                         true,
                         {{"alternate-exchange", "amq.fanout"}, {"n", std::int16_t{3}}}});
  QueueDef with_arguments = queue(7, "q", true, false, "a/b");
  with_arguments.spec.auto_delete = true;
  with_arguments.spec.arguments = {{"x-max-length", std::int32_t{10}}};
  topology.add_queue(with_arguments);
  const std::string bytes_key("\xff\x00k", 3);
  topology.add_binding(binding("x", kToQueue, "q", bytes_key, {{"x-match", "any"}}, "a/b"));
  topology.add_binding(binding("x", kToExchange, "amq.match", "", {}, "a/b"));

  auto documents = stored(topology);
  std::mt19937 random(1);
  std::shuffle(documents.begin(), documents.end(), random);
  std::vector<std::string> dropped;
  const Topology back = Topology::load(documents, dropped);
  EXPECT_TRUE(dropped.empty());
  EXPECT_EQ(stored(back), stored(topology));

  const QueueDef* q = back.find_queue(QueueId(7));
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->spec.arguments.find("x-max-length")->type_octet(), 'I');
  EXPECT_TRUE(q->spec.durable && q->spec.auto_delete && !q->spec.exclusive);
  EXPECT_EQ(back.bindings_to("a/b", kToQueue, "q").at(0).routing_key, bytes_key);
  EXPECT_NE(back.find_exchange("a/b", "amq.topic"), nullptr);
  EXPECT_EQ(back.permissions().at({"a/b", "u"}).write, "^w");
}

TEST(Topology, ABindingWithoutItsEndsIsDroppedAndNamed) {
  Topology topology;
  topology.add_vhost("/");
  topology.add_queue(queue(1, "q"));
  topology.add_exchange(exchange("x"));
  topology.add_binding(binding("x", kToQueue, "q", "key"));
  auto documents = stored(topology);
  std::erase_if(documents, [](const auto& d) { return d.first == "queue/%2F/q"; });
  std::vector<std::string> dropped;
  const Topology back = Topology::load(documents, dropped);
  EXPECT_EQ(dropped, std::vector<std::string>{"binding/%2F/x/queue/q/key/"});
  EXPECT_FALSE(back.is_source("/", "x"));
}

TEST(Topology, ADamagedDocumentIsNamed) {
  const std::pair<std::string, std::string> vhost{"vhost/%2F", R"({"name":"/"})"};
  const std::string queue_json = R"({"vhost":"/","name":"q","id":1,"durable":true,)"
                                 R"("auto_delete":false,"arguments":{}})";
  struct {
    std::string key;
    std::string json;
    std::string text;
  } const cases[] = {
      {"queue/%2F/q", "{", "stored definition 'queue/%2F/q': line 1"},
      {"queue/%2F/q", "[]", "stored definition 'queue/%2F/q' must be an object"},
      {"queue/%2F/q", R"({"vhost":"/","name":"q"})", "member 'id' is missing"},
      {"queue/%2F/q", R"({"vhost":"/","name":"q","id":-1})", "member 'id' must be a whole number"},
      {"queue/b/q",
       R"({"vhost":"b","name":"q","id":9,"durable":true,"auto_delete":false,)"
       R"("arguments":{}})",
       "names no vhost"},
      {"exchange/%2F/x", R"({"vhost":"/","name":"x","type":"topic","durable":1})",
       "member 'durable' must be true or false"},
      {"shovel/s", "{}", "stored definition 'shovel/s' is of an unknown kind"},
      {"queue/%2F/r", queue_json, "member 'id' is another queue's"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.key + " " + c.json);
    std::vector<std::string> dropped;
    try {
      Topology::load({vhost, {"queue/%2F/first", queue_json}, {c.key, c.json}}, dropped);
      ADD_FAILURE() << "was loaded";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(c.text), std::string::npos) << error.what();
    }
  }
}

// Random changes against a plain list of bindings.
TEST(Topology, KeepsItsIndexesThroughRandomChanges) {
  Topology topology;
  topology.add_vhost("/");
  std::vector<BindingDef> model;
  std::uint64_t next_id = 1;
  std::mt19937 random(7);
  const auto pick = [&](unsigned n) { return std::to_string(random() % n); };
  for (int round = 0; round < 5000; ++round) {
    const std::string x = "x" + pick(4);
    const std::string q = "q" + pick(6);
    const bool to_queue = random() % 3 != 0;
    const std::string end = to_queue ? q : "x" + pick(4);
    const auto involves = [&](const BindingDef& b, DestinationKind kind, const std::string& name) {
      return (b.destination_kind == kind && b.destination == name) ||
             (kind == kToExchange && b.source == name);
    };
    switch (random() % 8) {
      case 0:
        if (topology.find_queue("/", q) == nullptr) topology.add_queue(queue(next_id++, q));
        break;
      case 1:
        if (topology.find_exchange("/", x) == nullptr) topology.add_exchange(exchange(x));
        break;
      case 2:
        if (random() % 4 == 0) {
          const auto removed = topology.remove_queue("/", q);
          EXPECT_EQ(removed.size(),
                    std::erase_if(model, [&](const auto& b) { return involves(b, kToQueue, q); }));
        }
        break;
      case 3:
        if (random() % 4 == 0) {
          const auto removed = topology.remove_exchange("/", x);
          EXPECT_EQ(removed.size(), std::erase_if(model, [&](const auto& b) {
                      return involves(b, kToExchange, x);
                    }));
        }
        break;
      default: {
        const BindingDef b = binding(x, to_queue ? kToQueue : kToExchange, end, pick(3));
        const auto same = [&](const BindingDef& other) { return same_binding(b, other); };
        const bool known = std::any_of(model.begin(), model.end(), same);
        ASSERT_EQ(topology.has_binding(b), known);
        if (random() % 3 == 0) {
          EXPECT_EQ(topology.remove_binding(b), known);
          std::erase_if(model, same);
        } else if (topology.find_exchange("/", x) != nullptr &&
                   (to_queue ? topology.find_queue("/", end) != nullptr
                             : topology.find_exchange("/", end) != nullptr)) {
          topology.add_binding(b);
          if (!known) model.push_back(b);
        }
      }
    }
    std::size_t total = 0;
    for (const auto& [source, bindings] : topology.bindings()) total += bindings.size();
    ASSERT_EQ(total, model.size());
    ASSERT_EQ(
        topology.bindings_to("/", kToQueue, q).size(),
        static_cast<std::size_t>(std::count_if(
            model.begin(), model.end(), [&](const auto& b) { return involves(b, kToQueue, q); })));
    ASSERT_EQ(
        topology.is_source("/", x),
        std::any_of(model.begin(), model.end(), [&](const auto& b) { return b.source == x; }));
  }
}

}  // namespace
}  // namespace stoat::broker
