#pragma once

#include <string>
#include <string_view>

// Passwords as RabbitMQ keeps them: base64(salt of 4 bytes + hash(salt + password)).

namespace stoat::broker {

inline constexpr std::string_view kSha256Algorithm = "rabbit_password_hashing_sha256";
inline constexpr std::string_view kSha512Algorithm = "rabbit_password_hashing_sha512";

// Salted SHA-256 with a fresh random salt.
std::string hash_password(std::string_view password);

// Takes the same time whichever byte differs. An empty or malformed hash and an unknown algorithm
// match no password.
bool password_matches(std::string_view password, std::string_view hash, std::string_view algorithm);

// Why a hash from elsewhere cannot be used; empty when it can. An empty hash is fine: the user
// cannot log in by password.
std::string check_password_hash(std::string_view hash, std::string_view algorithm);

}  // namespace stoat::broker
