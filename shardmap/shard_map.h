#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore {

/// The address of a MySQL server.
struct Host {
  static constexpr uint16_t kDefaultPort = 3306;
  std::string name;  ///< A host name or IPv4 address.
  uint16_t port = kDefaultPort;

  /// Returns "NAME", followed by ":PORT" if that is not the default one, as the shard map has it.
  std::string ToString() const;
  /// Parses what ToString returns. INVALID_ARGUMENT if it is not a host name with an optional port.
  static absl::StatusOr<Host> Parse(std::string_view text);
  friend auto operator<=>(const Host&, const Host&) = default;
};

/// Shards first..last, both included, and the pair of hosts that has them.
struct ShardRange {
  uint32_t first = 0;
  uint32_t last = 0;
  Host master;  ///< All reads and writes go here.
  Host slave;   ///< The master's replica, which can be promoted.
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// A shard map: which hosts have which shards. It is an immutable value, so it can be read by several
/// threads; operators edit it as JSON:
///
///   [{"range": [0, 511],    "master": "MySQL001A", "slave": "MySQL001B"},
///    {"range": [512, 1023], "master": "MySQL002B", "slave": "MySQL002A:3307"}]
///
/// Ranges are in ascending order and do not overlap; shards in gaps are not open yet.
/// Source: "Sharding Pinterest: How we scaled our MySQL fleet".
class ShardMap {
 public:
  static constexpr uint32_t kMaxShard = 65535;
  /// The longest text that Parse accepts. ZooKeeper's own limit for a node is 1 MiB.
  static constexpr size_t kMaxTextBytes = size_t{500} << 10;

  /// Parses and checks the text. INVALID_ARGUMENT says which entry is wrong and why.
  static absl::StatusOr<ShardMap> Parse(std::string_view json);

  /// Makes a map of these ranges. INVALID_ARGUMENT as of Parse.
  static absl::StatusOr<ShardMap> Create(std::vector<ShardRange> ranges);

  /// Returns the range of a shard; null if the shard is not open, or beyond kMaxShard. Takes a few
  /// nanoseconds.
  const ShardRange* Find(uint32_t shard) const;

  /// Returns the ranges in order; there is at least one.
  std::span<const ShardRange> ranges() const { return ranges_; }

  /// Returns the number of open shards.
  uint32_t open_shards() const { return open_shards_; }

  /// Returns a text that Parse accepts, with one entry a line.
  std::string ToJson() const;

  friend bool operator==(const ShardMap&, const ShardMap&) = default;

 private:
  explicit ShardMap(std::vector<ShardRange> ranges);
  std::vector<ShardRange> ranges_;
  uint32_t open_shards_ = 0;
};

}  // namespace kvstore
