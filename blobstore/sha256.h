#pragma once

#include <openssl/types.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace kvstore {

using Sha256Digest = std::array<unsigned char, 32>;

/// Computes the SHA-256 of bytes that come in parts. Externally synchronised.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::string_view bytes);
  /// Returns the digest of all that was added, and begins anew.
  Sha256Digest Finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

Sha256Digest Sha256Of(std::string_view bytes);
Sha256Digest HmacSha256(std::string_view key, std::string_view bytes);

/// Returns a digest as 64 lower-case hexadecimal digits.
std::string Hex(const Sha256Digest& digest);
/// Returns the bytes of a digest.
std::string_view Bytes(const Sha256Digest& digest);

}  // namespace kvstore
