#include "wire/reply_code.hpp"

#include <gtest/gtest.h>

#include "tests/wire/bytes.hpp"
#include "wire/utf8.hpp"

namespace stoat::wire {
namespace {

using test::bytes;

TEST(ReplyCode, ChannelNames) {
  const struct {
    int code;
    const char* name;
  } cases[] = {
      {311, "CONTENT_TOO_LARGE"}, {313, "NO_CONSUMERS"},    {403, "ACCESS_REFUSED"},
      {404, "NOT_FOUND"},         {405, "RESOURCE_LOCKED"}, {406, "PRECONDITION_FAILED"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(name_of(static_cast<ChannelErrorCode>(c.code)), c.name) << c.code;
  }
}

TEST(ReplyCode, ConnectionNames) {
  const struct {
    int code;
    const char* name;
  } cases[] = {
      {320, "CONNECTION_FORCED"}, {402, "INVALID_PATH"},     {403, "ACCESS_REFUSED"},
      {501, "FRAME_ERROR"},       {502, "SYNTAX_ERROR"},     {503, "COMMAND_INVALID"},
      {504, "CHANNEL_ERROR"},     {505, "UNEXPECTED_FRAME"}, {506, "RESOURCE_ERROR"},
      {530, "NOT_ALLOWED"},       {540, "NOT_IMPLEMENTED"},  {541, "INTERNAL_ERROR"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(name_of(static_cast<ConnectionErrorCode>(c.code)), c.name) << c.code;
  }
}

TEST(ReplyText, NameThenExplanation) {
  EXPECT_EQ(reply_text(ChannelErrorCode::not_found, "no queue 'q' in vhost '/'"),
            "NOT_FOUND - no queue 'q' in vhost '/'");
  EXPECT_EQ(reply_text(ConnectionErrorCode::channel_error, "second 'channel.open' seen"),
            "CHANNEL_ERROR - second 'channel.open' seen");
}

// "NOT_FOUND - " takes 12 bytes, which leaves 243.
TEST(ReplyText, CutAt255Bytes) {
  const std::string prefix = "NOT_FOUND - ";
  const auto text = [](const std::string& explanation) {
    return reply_text(ChannelErrorCode::not_found, explanation);
  };
  EXPECT_EQ(text(std::string(242, 'a')), prefix + std::string(242, 'a'));
  EXPECT_EQ(text(std::string(243, 'a')), prefix + std::string(243, 'a'));
  EXPECT_EQ(text(std::string(244, 'a')), prefix + std::string(243, 'a'));
  EXPECT_EQ(text(std::string(100000, 'a')), prefix + std::string(243, 'a'));
}

TEST(ReplyText, NeverCutsWithinACharacter) {
  const std::string characters[] = {bytes("c3a9"), bytes("e282ac"), bytes("f09f9880")};
  for (const std::string& character : characters) {
    for (std::size_t before = 235; before < 250; ++before) {
      const std::string text =
          reply_text(ChannelErrorCode::not_found, std::string(before, 'a') + character + "tail");
      ASSERT_TRUE(valid_utf8(text)) << before;
      ASSERT_LE(text.size(), 255u);
      // As much as fits: only a character that would not fit whole is missing.
      const bool fits = 12 + before + character.size() <= 255;
      if (before <= 243) {
        EXPECT_EQ(text.find(character) != text.npos, fits) << before;
        EXPECT_EQ(text.size(), fits ? std::min<std::size_t>(255, 12 + before + character.size() + 4)
                                    : 12 + before);
      }
    }
  }
}

// A short string has to be UTF-8, whatever name the peer sent that the text quotes.
TEST(ReplyText, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(reply_text(ChannelErrorCode::not_found, bytes("'no queue 'ff'a'c3")),
            "NOT_FOUND - no queue ?a?");
}

TEST(ReplyText, ErrorsCarryIt) {
  const ChannelError channel(ChannelErrorCode::precondition_failed, "unknown delivery tag 99",
                             {60, 80});
  EXPECT_STREQ(channel.what(), "PRECONDITION_FAILED - unknown delivery tag 99");
  EXPECT_EQ(channel.method, (MethodId{60, 80}));
  const ConnectionError connection(ConnectionErrorCode::not_allowed, "vhost v not found");
  EXPECT_STREQ(connection.what(), "NOT_ALLOWED - vhost v not found");
  EXPECT_EQ(connection.method, MethodId{});
}

}  // namespace
}  // namespace stoat::wire
