#include "shardmap/mod_shard.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace kvstore {

uint32_t ModShard(std::string_view key, uint32_t count) {
  // MD5 only distributes keys here; its weaknesses do not matter.
  static const EVP_MD* const kMd5 = EVP_MD_fetch(nullptr, "MD5", nullptr);
  std::array<unsigned char, 16> digest{};
  EVP_Digest(key.data(), key.size(), digest.data(), nullptr, kMd5, nullptr);
  uint64_t rest = 0;  // the bytes that were read so far, as a number, modulo count
  for (const unsigned char byte : digest) rest = (rest << 8 | byte) % count;
  return static_cast<uint32_t>(rest);
}

absl::Status ValidateModMap(const ShardMap& map) {
  uint32_t next = 0;
  for (const ShardRange& range : map.ranges()) {
    if (range.first != next) {
      return absl::InvalidArgumentError(
          fmt::format("mod shard map: shards {} to {} are missing; mod shards go from 0 on without gaps",
                      next, range.first - 1));
    }
    next = range.last + 1;
  }
  return absl::OkStatus();
}

absl::Status ValidateModUpdate(const ShardMap& current, const ShardMap& next) {
  if (auto status = ValidateModMap(next); !status.ok()) return status;
  if (ModShardCount(current) == ModShardCount(next)) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "mod shard map: {} shards where there are {}; their number can never change, because it says where "
      "each key is",
      ModShardCount(next), ModShardCount(current)));
}

}  // namespace kvstore
