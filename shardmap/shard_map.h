#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore {

/// Where a MySQL server listens.
struct Host {
  static constexpr uint16_t kDefaultPort = 3306;
  std::string name;  ///< A host name or IPv4 address.
  uint16_t port = kDefaultPort;

  /// "NAME", with ":PORT" if it is not the default one: as in the shard map.
  std::string ToString() const;
  /// Reads that. INVALID_ARGUMENT if it is not a host name with an optional port.
  static absl::StatusOr<Host> Parse(std::string_view text);
  friend auto operator<=>(const Host&, const Host&) = default;
};

/// Shards first..last, both included, and the pair of hosts that has them.
struct ShardRange {
  uint32_t first = 0;
  uint32_t last = 0;
  Host master;  ///< Reads and writes go here, and nowhere else.
  Host slave;   ///< Its replica, which can take its place.
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// Which hosts have which shards: the JSON that operators edit, as an immutable value. Thread-safe, as a
/// plain value is.
///
///   [{"range": [0, 511],    "master": "MySQL001A", "slave": "MySQL001B"},
///    {"range": [512, 1023], "master": "MySQL002B", "slave": "MySQL002A:3307"}]
///
/// Ranges are in order and do not overlap; gaps are shards that are not open yet.
/// Source: "Sharding Pinterest: How we scaled our MySQL fleet".
class ShardMap {
 public:
  static constexpr uint32_t kMaxShard = 65535;
  /// What ZooKeeper may hold of a map; its own limit for a node is 1 MiB.
  static constexpr size_t kMaxTextBytes = size_t{500} << 10;

  /// Reads and checks the text. INVALID_ARGUMENT says which entry is wrong and why.
  static absl::StatusOr<ShardMap> Parse(std::string_view json);

  /// A map of these ranges. INVALID_ARGUMENT as with Parse.
  static absl::StatusOr<ShardMap> Of(std::vector<ShardRange> ranges);

  /// The range of a shard; null if it is not open, or beyond kMaxShard. A few nanoseconds.
  const ShardRange* Find(uint32_t shard) const;

  /// In order; at least one.
  std::span<const ShardRange> ranges() const { return ranges_; }

  /// How many shards are open.
  uint32_t open_shards() const { return open_shards_; }

  /// Text that Parse reads back, an entry a line.
  std::string ToJson() const;

  friend bool operator==(const ShardMap&, const ShardMap&) = default;

 private:
  explicit ShardMap(std::vector<ShardRange> ranges);
  std::vector<ShardRange> ranges_;
  uint32_t open_shards_ = 0;
};

}  // namespace kvstore
