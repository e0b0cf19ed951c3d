// core/hmac_sha256: OpenSSL's, for the parts that link it.
#pragma once

#include <array>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <penstock/core/error.hpp>

namespace penstock::core {

using Sha256 = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// RFC 2104.
///
/// Errors  Error  this OpenSSL has no SHA-256
[[nodiscard]] inline Sha256 hmac_sha256(std::string_view key, std::string_view text) {
  Sha256 hash;
  unsigned size = 0;
  const void* const made =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(), &size);
  if (made == nullptr) throw Error("OpenSSL cannot make an HMAC-SHA256");
  return hash;
}

}  // namespace penstock::core
