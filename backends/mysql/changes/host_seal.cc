#include "backends/mysql/changes/host_seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace kvstore::mysql {
namespace {

constexpr size_t kSealBytes = 16;

}  // namespace

std::string SealHosts(const std::vector<ChangePosition::Pair>& pairs, std::string_view secret) {
  std::string names;
  for (const ChangePosition::Pair& pair : pairs)
    names.append(pair.master).append(1, '\0').append(pair.slave).append(1, '\0');
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(names.data()), names.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), kSealBytes};
}

bool HostsAreSealed(const ChangePosition& position, std::string_view secret) {
  const std::string seal = SealHosts(position.pairs, secret);
  return position.seal.size() == seal.size() &&
         CRYPTO_memcmp(position.seal.data(), seal.data(), seal.size()) == 0;
}

}  // namespace kvstore::mysql
