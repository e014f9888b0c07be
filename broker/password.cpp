#include "broker/password.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <optional>

#include "base/assert.hpp"
#include "broker/base64.hpp"

namespace stoat::broker {
namespace {

constexpr std::size_t kSaltBytes = 4;

// Size of the digest; 0 for an algorithm that is not ours.
std::size_t digest_bytes(std::string_view algorithm) {
  if (algorithm == kSha256Algorithm) return SHA256_DIGEST_LENGTH;
  if (algorithm == kSha512Algorithm) return SHA512_DIGEST_LENGTH;
  return 0;
}

// REQUIRES: an algorithm of ours.
std::string salted_hash(std::string_view salt, std::string_view password,
                        std::string_view algorithm) {
  std::string salted(salt);
  salted += password;
  unsigned char digest[SHA512_DIGEST_LENGTH];
  const auto* bytes = reinterpret_cast<const unsigned char*>(salted.data());
  if (algorithm == kSha256Algorithm) {
    SHA256(bytes, salted.size(), digest);
  } else {
    SHA512(bytes, salted.size(), digest);
  }
  OPENSSL_cleanse(salted.data(), salted.size());
  std::string hash(salt);
  hash.append(reinterpret_cast<const char*>(digest), digest_bytes(algorithm));
  return hash;
}

}  // namespace

std::string hash_password(std::string_view password) {
  unsigned char salt[kSaltBytes];
  const int random = RAND_bytes(salt, sizeof salt);
  STOAT_ASSERT(random == 1, random);
  return base64_encode(
      salted_hash({reinterpret_cast<const char*>(salt), sizeof salt}, password, kSha256Algorithm));
}

bool password_matches(std::string_view password, std::string_view hash,
                      std::string_view algorithm) {
  const std::size_t digest = digest_bytes(algorithm);
  const std::optional<std::string> stored = base64_decode(hash);
  if (digest == 0 || !stored || stored->size() != kSaltBytes + digest) return false;
  const std::string offered =
      salted_hash(std::string_view(*stored).substr(0, kSaltBytes), password, algorithm);
  return CRYPTO_memcmp(offered.data(), stored->data(), stored->size()) == 0;
}

std::string check_password_hash(std::string_view hash, std::string_view algorithm) {
  const std::size_t digest = digest_bytes(algorithm);
  if (digest == 0) {
    return "hashing algorithm '" + std::string(algorithm) + "' is not supported: only " +
           std::string(kSha256Algorithm) + " and " + std::string(kSha512Algorithm) + " are";
  }
  if (hash.empty()) return {};
  const std::optional<std::string> bytes = base64_decode(hash);
  if (!bytes || bytes->size() != kSaltBytes + digest) {
    return "the password hash is not base64 of a 4-byte salt and a digest of " +
           std::to_string(digest) + " bytes";
  }
  return {};
}

}  // namespace stoat::broker
