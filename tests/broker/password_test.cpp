#include "broker/password.hpp"

#include <gtest/gtest.h>

#include "broker/base64.hpp"

namespace stoat::broker {
namespace {

// Made with RabbitMQ's recipe: base64(salt + digest(salt + password)), salt 908DC60A.
constexpr std::string_view kHashOfTest12 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

TEST(Password, MatchesRabbitMqsHash) {
  EXPECT_TRUE(password_matches("test12", kHashOfTest12, kSha256Algorithm));
  EXPECT_FALSE(password_matches("test13", kHashOfTest12, kSha256Algorithm));
  EXPECT_FALSE(password_matches("", kHashOfTest12, kSha256Algorithm));
  EXPECT_FALSE(password_matches("test12", kHashOfTest12, kSha512Algorithm));
  EXPECT_FALSE(password_matches("test12", kHashOfTest12, "rabbit_password_hashing_md5"));
}

TEST(Password, FreshHashesAreSaltedAndMatch) {
  const std::string hash = hash_password("s3cret");
  EXPECT_NE(hash, hash_password("s3cret"));
  EXPECT_TRUE(password_matches("s3cret", hash, kSha256Algorithm));
  EXPECT_FALSE(password_matches("s3cres", hash, kSha256Algorithm));
  const std::string with_zero("a\0b", 3);
  EXPECT_TRUE(password_matches(with_zero, hash_password(with_zero), kSha256Algorithm));
  EXPECT_FALSE(password_matches("a", hash_password(with_zero), kSha256Algorithm));
}

TEST(Password, AnUnusableHashMatchesNothing) {
  for (const std::string_view hash : {"", "AAAA", "not base64", "kI3GCqW5JLMJ"}) {
    EXPECT_FALSE(password_matches("", hash, kSha256Algorithm)) << hash;
    EXPECT_FALSE(password_matches("test12", hash, kSha256Algorithm)) << hash;
  }
}

TEST(Password, HashesFromElsewhereAreChecked) {
  EXPECT_EQ(check_password_hash(kHashOfTest12, kSha256Algorithm), "");
  EXPECT_EQ(check_password_hash("", kSha512Algorithm), "");
  EXPECT_NE(check_password_hash(kHashOfTest12, kSha512Algorithm), "");
  EXPECT_NE(check_password_hash("kI3GC", kSha256Algorithm), "");
  EXPECT_NE(check_password_hash(kHashOfTest12, "rabbit_password_hashing_md5"), "");
}

TEST(Base64, VectorsOfRfc4648) {
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"},
                                                         {std::string("\xff\xfe\0", 3), "//4A"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64, RefusesWhatIsNotWhole) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Z===", "=", "====", "Zg==Zg==", "Zm9 ",
                                      " Zm9v", "Zm9v\n", "Zm-v", "Z=9v"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stoat::broker
