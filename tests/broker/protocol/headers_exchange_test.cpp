// The headers exchange: x-match, empty arguments, void, nested values.

#include "tests/broker/protocol/protocol_test.hpp"

namespace stoat::test {
namespace {

class HeadersExchange : public ProtocolTest {
 protected:
  void SetUp() override {
    client_.emplace(connect());
    x_ = exchange();
    client_->declare_exchange(1, x_, "headers");
  }
  std::string bound(std::string_view stem, const Table& arguments) {
    const std::string q = queue(stem);
    client_->declare_queue(1, q);
    client_->bind(1, q, x_, "", arguments);
    return q;
  }
  void publish(std::string_view body, const std::optional<Table>& headers) {
    Properties properties;
    properties.headers = headers;
    client_->publish(1, x_, "", body, properties);
  }
  std::vector<std::string> arrived(const std::string& q) { return bodies(client_->drain(1, q)); }

  using Bodies = std::vector<std::string>;
  std::optional<WireClient> client_;
  std::string x_;
};

TEST_F(HeadersExchange, MissingXMatchMeansAll) {
  const std::string q = bound("none", {{"a", 1}, {"b", 2}});
  const std::string any = bound("any", {{"x-match", "any"}, {"a", 1}, {"b", 2}});
  publish("both", Table{{"a", 1}, {"b", 2}});
  publish("both and more", Table{{"b", 2}, {"a", 1}, {"c", 3}});
  publish("one", Table{{"a", 1}});
  publish("wrong", Table{{"a", 2}, {"b", 1}});
  publish("empty", Table{});
  publish("no headers", std::nullopt);
  EXPECT_EQ(arrived(q), (Bodies{"both", "both and more"}));
  EXPECT_EQ(arrived(any), (Bodies{"both", "both and more", "one"}));
}

TEST_F(HeadersExchange, AllOfNothingMatchesEverythingAndAnyOfNothingNothing) {
  const std::string all = bound("all", {{"x-match", "all"}});
  const std::string any = bound("any", {{"x-match", "any"}});
  const std::string bare = bound("bare", {});
  publish("headers", Table{{"a", 1}});
  publish("empty", Table{});
  publish("no headers", std::nullopt);
  EXPECT_EQ(arrived(all), (Bodies{"headers", "empty", "no headers"}));
  EXPECT_EQ(arrived(bare), (Bodies{"headers", "empty", "no headers"}));
  EXPECT_TRUE(arrived(any).empty());
}

TEST_F(HeadersExchange, NestedTablesCompareByStructure) {
  const std::string q = bound("nested", {{"x-match", "all"}, {"t", Table{{"k", "v"}, {"n", 1}}}});
  publish("same", Table{{"t", Table{{"k", "v"}, {"n", 1}}}});
  publish("other value", Table{{"t", Table{{"k", "w"}, {"n", 1}}}});
  publish("less", Table{{"t", Table{{"k", "v"}}}});
  publish("text", Table{{"t", "v"}});
  EXPECT_EQ(arrived(q), (Bodies{"same"}));
}

TEST_F(HeadersExchange, VoidMeansThatTheKeyIsThere) {
  const std::string q = bound("void", {{"x-match", "all"}, {"present", Void{}}});
  publish("text", Table{{"present", "x"}});
  publish("number", Table{{"present", 0}});
  publish("void", Table{{"present", Void{}}});
  publish("absent", Table{{"other", 1}});
  EXPECT_EQ(arrived(q), (Bodies{"text", "number", "void"}));
}

TEST_F(HeadersExchange, KeysWithXDoNotCountUnlessAskedFor) {
  const std::string all = bound("all", {{"x-match", "all"}, {"a", 1}, {"x-own", "v"}});
  const std::string any = bound("any", {{"x-match", "any"}, {"a", 1}, {"x-own", "v"}});
  publish("a only", Table{{"a", 1}});
  publish("x only", Table{{"x-own", "v"}});
  EXPECT_EQ(arrived(all), (Bodies{"a only"}));
  EXPECT_EQ(arrived(any), (Bodies{"a only"}));
}

TEST_F(HeadersExchange, WithXCountsThem) {
  const std::string all = bound("all", {{"x-match", "all-with-x"}, {"a", 1}, {"x-own", "v"}});
  const std::string any = bound("any", {{"x-match", "any-with-x"}, {"a", 1}, {"x-own", "v"}});
  publish("a only", Table{{"a", 1}});
  publish("x only", Table{{"x-own", "v"}});
  publish("both", Table{{"a", 1}, {"x-own", "v"}});
  EXPECT_EQ(arrived(all), (Bodies{"both"}));
  EXPECT_EQ(arrived(any), (Bodies{"a only", "x only", "both"}));
}

TEST_F(HeadersExchange, IntegersOfAnyWidthCompareByValue) {
  const std::string q = bound("n", {{"x-match", "all"}, {"n", std::int32_t{7}}});
  publish("int8", Table{{"n", std::int8_t{7}}});
  publish("int64", Table{{"n", std::int64_t{7}}});
  publish("text", Table{{"n", "7"}});
  EXPECT_EQ(arrived(q), (Bodies{"int8", "int64"}));
}

TEST_F(HeadersExchange, BadXMatchIsRefusedOnTheChannel) {
  const std::string q = queue();
  client_->declare_queue(1, q);
  for (const FieldValue& bad : {FieldValue("foo"), FieldValue(1), FieldValue(true)}) {
    client_->send(1, queue::Bind{0, q, x_, "", false, Table{{"x-match", bad}}});
    client_->expect_channel_close(1, 406);
    client_->open_channel(1);
  }
  publish("nowhere", Table{{"a", 1}});
  EXPECT_TRUE(arrived(q).empty()) << "a refused binding must not be there";
}

}  // namespace
}  // namespace stoat::test
