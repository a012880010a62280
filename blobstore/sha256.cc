#include "blobstore/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"

namespace kvstore {
namespace {

/// Looked up once: a look-up takes longer than hashing a short text.
const EVP_MD* Algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kAlgorithm;
}

}  // namespace

void Sha256::Free::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex2(context_.get(), Algorithm(), nullptr); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

Sha256Digest Sha256::Finish() {
  Sha256Digest digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  EVP_DigestInit_ex2(context_.get(), Algorithm(), nullptr);
  return digest;
}

Sha256Digest Sha256Of(std::string_view bytes) {
  Sha256Digest digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, Algorithm(), nullptr);
  return digest;
}

Sha256Digest HmacSha256(std::string_view key, std::string_view bytes) {
  Sha256Digest digest{};
  HMAC(Algorithm(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data(), nullptr);
  return digest;
}

std::string Hex(const Sha256Digest& digest) {
  const std::string_view bytes = Bytes(digest);
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::string_view Bytes(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace kvstore
