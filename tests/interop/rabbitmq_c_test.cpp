// rabbitmq-c (Debian's librabbitmq) against the broker at AMQP_PORT, 5672 unless set.

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr timeval kReplyLimit{10, 0};
constexpr timeval kQuiet{0, 200'000};

amqp_bytes_t bytes(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
std::string text(amqp_bytes_t value) {
  return {static_cast<const char*>(value.bytes), value.len};
}

std::string describe(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
    return amqp_error_string2(reply.library_error);
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) return "no error";
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_channel_close_t*>(reply.reply.decoded);
    return std::to_string(close->reply_code) + " " + text(close->reply_text);
  }
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_connection_close_t*>(reply.reply.decoded);
    return std::to_string(close->reply_code) + " " + text(close->reply_text);
  }
  return amqp_method_name(reply.reply.id);
}

std::uint16_t port() {
  const char* set = std::getenv("AMQP_PORT");
  return static_cast<std::uint16_t>(set != nullptr ? std::atoi(set) : 5672);
}

struct Message {
  std::uint64_t tag = 0;
  bool redelivered = false;
  std::string body;
  amqp_basic_properties_t properties{};  // lives until the connection releases its buffers
};

// A connection with channel 1 open.
class Client {
 public:
  Client() : connection_(amqp_new_connection()) {
    amqp_socket_t* socket = amqp_tcp_socket_new(connection_);
    if (amqp_socket_open(socket, "127.0.0.1", port()) != AMQP_STATUS_OK)
      throw std::runtime_error("cannot connect");
    check(amqp_login(connection_, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"));
    amqp_channel_open(connection_, kChannel);
    check();
  }
  ~Client() {
    amqp_connection_close(connection_, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(connection_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  amqp_connection_state_t raw() { return connection_; }
  void check() { check(amqp_get_rpc_reply(connection_)); }
  static void check(const amqp_rpc_reply_t& reply) {
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(describe(reply));
  }

  // An exclusive queue with a name of the broker's.
  std::string declare() {
    const auto* ok =
        amqp_queue_declare(connection_, kChannel, amqp_empty_bytes, 0, 0, 1, 0, amqp_empty_table);
    check();
    return text(ok->queue);
  }
  void publish(std::string_view exchange, std::string_view key, std::string_view body,
               const amqp_basic_properties_t* properties = nullptr, bool mandatory = false) {
    const int status = amqp_basic_publish(connection_, kChannel, bytes(exchange), bytes(key),
                                          mandatory, 0, properties, bytes(body));
    if (status != AMQP_STATUS_OK) throw std::runtime_error(amqp_error_string2(status));
  }
  // basic.get; false when the queue is empty.
  bool get(const std::string& queue, Message& message, bool no_ack = true) {
    const amqp_rpc_reply_t reply = amqp_basic_get(connection_, kChannel, bytes(queue), no_ack);
    check(reply);
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return false;
    const auto* ok = static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
    message.tag = ok->delivery_tag;
    message.redelivered = ok->redelivered != 0;
    amqp_message_t content;
    check(amqp_read_message(connection_, kChannel, &content, 0));
    message.body = text(content.body);
    message.properties = content.properties;
    amqp_bytes_free(content.body);  // the properties' pool stays with the channel
    return true;
  }
  std::vector<std::string> drain(const std::string& queue) {
    std::vector<std::string> bodies;
    for (Message message; get(queue, message);) bodies.push_back(message.body);
    return bodies;
  }
  // A delivery to a consumer; false when none comes within the limit.
  bool consume_one(Message& message, timeval limit) {
    amqp_envelope_t envelope;
    amqp_maybe_release_buffers(connection_);
    const amqp_rpc_reply_t reply = amqp_consume_message(connection_, &envelope, &limit, 0);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
        reply.library_error == AMQP_STATUS_TIMEOUT)
      return false;
    check(reply);
    message.tag = envelope.delivery_tag;
    message.redelivered = envelope.redelivered != 0;
    message.body = text(envelope.message.body);
    amqp_destroy_envelope(&envelope);
    return true;
  }
  // The next method that is not a delivery.
  amqp_frame_t next_method() {
    amqp_frame_t frame;
    timeval limit = kReplyLimit;
    const int status = amqp_simple_wait_frame_noblock(connection_, &frame, &limit);
    if (status != AMQP_STATUS_OK) throw std::runtime_error(amqp_error_string2(status));
    return frame;
  }

 private:
  amqp_connection_state_t connection_;
};

TEST(RabbitmqC, TopicRouting) {
  Client client;
  const std::string one = client.declare(), many = client.declare();
  const std::string word = "rabbitmq-c." + std::to_string(getpid());
  for (const auto& [queue, key] : {std::pair{one, word + ".*.c"}, std::pair{many, word + ".#"}}) {
    amqp_queue_bind(client.raw(), kChannel, bytes(queue), bytes("amq.topic"), bytes(key),
                    amqp_empty_table);
    client.check();
  }
  for (const std::string& key : {word + ".b.c", word, word + ".b.c.d", std::string("other.b.c")})
    client.publish("amq.topic", key, key);
  EXPECT_EQ(client.drain(one), (std::vector{word + ".b.c"}));
  EXPECT_EQ(client.drain(many), (std::vector{word + ".b.c", word, word + ".b.c.d"}));
}

TEST(RabbitmqC, ConfirmsAndReturns) {
  Client client;
  const std::string queue = client.declare();
  amqp_confirm_select(client.raw(), kChannel);
  client.check();
  amqp_basic_properties_t persistent{};
  persistent._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  persistent.delivery_mode = 2;
  client.publish("", queue, "kept", &persistent, true);
  amqp_frame_t frame = client.next_method();
  ASSERT_EQ(frame.payload.method.id, AMQP_BASIC_ACK_METHOD) << "and no return before it";
  client.publish("", "no such queue", "back", &persistent, true);
  frame = client.next_method();
  ASSERT_EQ(frame.payload.method.id, AMQP_BASIC_RETURN_METHOD);
  EXPECT_EQ(static_cast<amqp_basic_return_t*>(frame.payload.method.decoded)->reply_code, 312);
  amqp_message_t returned;
  client.check(amqp_read_message(client.raw(), kChannel, &returned, 0));
  EXPECT_EQ(text(returned.body), "back");
  amqp_destroy_message(&returned);
  frame = client.next_method();
  ASSERT_EQ(frame.payload.method.id, AMQP_BASIC_ACK_METHOD);
  EXPECT_EQ(static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded)->delivery_tag, 2u);
  EXPECT_EQ(client.drain(queue), std::vector<std::string>{"kept"});
}

TEST(RabbitmqC, PrefetchAndMultipleAck) {
  Client client;
  const std::string queue = client.declare();
  for (int i = 0; i < 10; ++i) client.publish("", queue, std::to_string(i));
  amqp_basic_qos(client.raw(), kChannel, 0, 3, 0);
  client.check();
  amqp_basic_consume(client.raw(), kChannel, bytes(queue), amqp_empty_bytes, 0, 0, 0,
                     amqp_empty_table);
  client.check();
  Message message;
  for (const char* body : {"0", "1", "2"}) {
    ASSERT_TRUE(client.consume_one(message, kReplyLimit));
    EXPECT_EQ(message.body, body);
  }
  EXPECT_FALSE(client.consume_one(message, kQuiet));
  amqp_basic_ack(client.raw(), kChannel, 3, 1);
  for (int i = 3; i < 6; ++i) {
    ASSERT_TRUE(client.consume_one(message, kReplyLimit));
    EXPECT_EQ(message.body, std::to_string(i));
  }
  EXPECT_FALSE(client.consume_one(message, kQuiet));
}

TEST(RabbitmqC, RequeueKeepsTheOrderAndMarks) {
  Client client;
  const std::string queue = client.declare();
  for (int i = 0; i < 5; ++i) client.publish("", queue, std::to_string(i));
  std::vector<std::uint64_t> tags;
  Message message;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.get(queue, message, false));
    tags.push_back(message.tag);
  }
  amqp_basic_nack(client.raw(), kChannel, tags[2], 0, 1);
  amqp_basic_reject(client.raw(), kChannel, tags[0], 1);
  amqp_basic_ack(client.raw(), kChannel, tags[1], 0);
  for (const auto& [body, redelivered] : {std::pair{"0", true}, {"2", true}, {"3", false}}) {
    ASSERT_TRUE(client.get(queue, message));
    EXPECT_EQ(message.body, body);
    EXPECT_EQ(message.redelivered, redelivered);
  }
}

TEST(RabbitmqC, BigBodies) {
  Client client;
  const std::string queue = client.declare();
  for (const std::size_t size : {0, 1, 131064, 131065, 5 * 1024 * 1024}) {
    std::string body(size, '\0');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 2654435761u >> 13);
    client.publish("", queue, body);
    Message message;
    ASSERT_TRUE(client.get(queue, message));
    EXPECT_TRUE(message.body == body) << size;
  }
}

TEST(RabbitmqC, EveryHeaderTypeArrives) {
  Client client;
  const std::string queue = client.declare();
  std::vector<amqp_table_entry_t> entries;
  const auto add = [&](const char* key, amqp_field_value_kind_t kind) -> amqp_field_value_t& {
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes(key);
    entry.value.kind = static_cast<std::uint8_t>(kind);
    entries.push_back(entry);
    return entries.back().value;
  };
  add("bool", AMQP_FIELD_KIND_BOOLEAN).value.boolean = 1;
  add("i8", AMQP_FIELD_KIND_I8).value.i8 = -5;
  add("u8", AMQP_FIELD_KIND_U8).value.u8 = 250;
  add("i16", AMQP_FIELD_KIND_I16).value.i16 = -3000;
  add("u16", AMQP_FIELD_KIND_U16).value.u16 = 60000;
  add("i32", AMQP_FIELD_KIND_I32).value.i32 = -3'000'000;
  add("u32", AMQP_FIELD_KIND_U32).value.u32 = 4'000'000'000u;
  add("i64", AMQP_FIELD_KIND_I64).value.i64 = -5'000'000'000;
  add("f32", AMQP_FIELD_KIND_F32).value.f32 = 1.5f;
  add("f64", AMQP_FIELD_KIND_F64).value.f64 = 2.25;
  add("decimal", AMQP_FIELD_KIND_DECIMAL).value.decimal = {2, 314};
  add("utf8", AMQP_FIELD_KIND_UTF8).value.bytes = amqp_cstring_bytes("Größe");
  add("bytes", AMQP_FIELD_KIND_BYTES).value.bytes = bytes({"\0\xff", 2});
  add("time", AMQP_FIELD_KIND_TIMESTAMP).value.u64 = 1'767'225'600;
  add("void", AMQP_FIELD_KIND_VOID);
  amqp_field_value_t element{};
  element.kind = AMQP_FIELD_KIND_I32;
  element.value.i32 = 7;
  add("array", AMQP_FIELD_KIND_ARRAY).value.array = {1, &element};
  amqp_table_entry_t inner{amqp_cstring_bytes("inner"), element};
  add("table", AMQP_FIELD_KIND_TABLE).value.table = {1, &inner};

  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {static_cast<int>(entries.size()), entries.data()};
  client.publish("", queue, "body", &properties);
  Message message;
  ASSERT_TRUE(client.get(queue, message));
  const amqp_table_t& got = message.properties.headers;
  ASSERT_EQ(got.num_entries, static_cast<int>(entries.size()));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string key = text(entries[i].key);
    const amqp_field_value_t* value = nullptr;
    for (int j = 0; j < got.num_entries; ++j)
      if (text(got.entries[j].key) == key) value = &got.entries[j].value;
    ASSERT_NE(value, nullptr) << key;
    EXPECT_EQ(value->kind, entries[i].value.kind) << key;
    switch (value->kind) {
      case AMQP_FIELD_KIND_UTF8:
      case AMQP_FIELD_KIND_BYTES:
        EXPECT_EQ(text(value->value.bytes), text(entries[i].value.value.bytes));
        break;
      case AMQP_FIELD_KIND_ARRAY:
        ASSERT_EQ(value->value.array.num_entries, 1);
        EXPECT_EQ(value->value.array.entries[0].value.i32, 7);
        break;
      case AMQP_FIELD_KIND_TABLE:
        ASSERT_EQ(value->value.table.num_entries, 1);
        EXPECT_EQ(value->value.table.entries[0].value.value.i32, 7);
        break;
      case AMQP_FIELD_KIND_BOOLEAN:
        EXPECT_EQ(value->value.boolean, 1);
        break;
      case AMQP_FIELD_KIND_F32:
        EXPECT_EQ(value->value.f32, 1.5f);
        break;
      case AMQP_FIELD_KIND_F64:
        EXPECT_EQ(value->value.f64, 2.25);
        break;
      case AMQP_FIELD_KIND_DECIMAL:
        EXPECT_EQ(value->value.decimal.decimals, 2);
        EXPECT_EQ(value->value.decimal.value, 314u);
        break;
      case AMQP_FIELD_KIND_I8:
      case AMQP_FIELD_KIND_U8:
        EXPECT_EQ(value->value.u8, entries[i].value.value.u8) << key;
        break;
      case AMQP_FIELD_KIND_I16:
      case AMQP_FIELD_KIND_U16:
        EXPECT_EQ(value->value.u16, entries[i].value.value.u16) << key;
        break;
      case AMQP_FIELD_KIND_I32:
      case AMQP_FIELD_KIND_U32:
        EXPECT_EQ(value->value.u32, entries[i].value.value.u32) << key;
        break;
      case AMQP_FIELD_KIND_I64:
      case AMQP_FIELD_KIND_TIMESTAMP:
        EXPECT_EQ(value->value.u64, entries[i].value.value.u64) << key;
        break;
      default:
        break;  // void has no value
    }
  }
}

TEST(RabbitmqC, CancelStopsDeliveries) {
  Client client;
  const std::string queue = client.declare();
  amqp_basic_consume(client.raw(), kChannel, bytes(queue), bytes("tag"), 0, 1, 0, amqp_empty_table);
  client.check();
  client.publish("", queue, "before");
  Message message;
  ASSERT_TRUE(client.consume_one(message, kReplyLimit));
  amqp_basic_cancel(client.raw(), kChannel, bytes("tag"));
  client.check();
  client.publish("", queue, "after");
  EXPECT_FALSE(client.consume_one(message, kQuiet));
  EXPECT_EQ(client.drain(queue), std::vector<std::string>{"after"});
}

TEST(RabbitmqC, ExclusiveQueuesAreLocked) {
  Client client, stranger;
  const std::string queue = client.declare();
  const amqp_rpc_reply_t reply = amqp_basic_get(stranger.raw(), kChannel, bytes(queue), 1);
  EXPECT_TRUE(describe(reply).starts_with("405 RESOURCE_LOCKED")) << describe(reply);
}

TEST(RabbitmqC, ErrorsAreTold) {
  Client client;
  const amqp_rpc_reply_t reply = amqp_basic_get(client.raw(), kChannel, bytes("no such queue"), 1);
  EXPECT_EQ(describe(reply), "404 NOT_FOUND - no queue 'no such queue' in vhost '/'");
}

TEST(RabbitmqC, TransactionsCommitAndRollBack) {
  Client client;
  const std::string queue = client.declare();
  amqp_tx_select(client.raw(), kChannel);
  client.check();
  client.publish("", queue, "rolled back");
  amqp_tx_rollback(client.raw(), kChannel);
  client.check();
  client.publish("", queue, "committed");
  amqp_tx_commit(client.raw(), kChannel);
  client.check();
  EXPECT_EQ(client.drain(queue), std::vector<std::string>{"committed"});
}

}  // namespace
