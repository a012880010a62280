#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "shardmap/compact_map.h"
#include "shardmap/shard_map.h"

using namespace kvstore;

namespace {

/// Any packed part is refused, or is a map that comes back the same after it is packed again.
void Check(const std::string& packed) {
  auto ranges = UnpackRanges(packed);
  if (!ranges.ok()) return;
  const auto map = ShardMap::Create(*std::move(ranges));
  if (!map.ok()) return;
  const auto again = UnpackRanges(PackRanges(map->ranges()));
  if (!again.ok() || !(*ShardMap::Create(*again) == *map)) std::abort();
  const auto stored = ShardMap::Parse(map->ToStored());
  if (!stored.ok() || !(*stored == *map)) std::abort();
}

}  // namespace

/// The bytes are taken as the packed part, as the zstd frame in it, and as the JSON in the frame: a fuzzer
/// would not get through base64 and zstd by itself.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  Check(absl::Base64Escape(bytes));
  std::string frame(ZSTD_compressBound(size), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), size, 1));
  Check(absl::Base64Escape(frame));
  return 0;
}
