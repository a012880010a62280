#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "shardmap/shard_range.h"

namespace kvstore {

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
  static constexpr uint32_t kMaxShard = kMaxShardNumber;
  /// The longest text that Parse accepts; 65,536 entries take some 7 MiB.
  static constexpr size_t kMaxTextBytes = size_t{16} << 20;
  /// The longest text that is stored as people write it, some 1,400 entries; ToStored packs a longer one.
  static constexpr size_t kMaxPlainBytes = size_t{128} << 10;

  /// Parses and checks a map in either form, in a time that the text's size bounds, whatever is in it.
  /// INVALID_ARGUMENT says which entry is wrong and why; one with more entries than there are shards is
  /// refused before they are read.
  static absl::StatusOr<ShardMap> Parse(std::string_view json);
  /// Whether a text is of the compact form, be it a valid map or not.
  static bool IsCompact(std::string_view text);

  /// Makes a map of these ranges. INVALID_ARGUMENT as of Parse.
  static absl::StatusOr<ShardMap> Create(std::vector<ShardRange> ranges);

  /// Returns the range of a shard; null if the shard is not open, or beyond kMaxShard. One load, however many
  /// ranges there are: some two nanoseconds.
  const ShardRange* Find(uint32_t shard) const;

  /// Returns the ranges in order; there is at least one.
  std::span<const ShardRange> ranges() const { return ranges_; }

  /// Returns the number of open shards.
  uint32_t open_shards() const { return open_shards_; }

  /// Returns a text that Parse accepts, with one entry a line, for people to edit.
  std::string ToJson() const;
  /// Returns the form in which the map is to be stored: ToJson up to kMaxPlainBytes, else the compact form,
  /// which has the ranges packed (compact_map.h): 65,536 ranges of different pairs among 1,000 hosts take
  /// 270 KiB. A program that does not know the compact form refuses it as a map whose only entry has a field
  /// "a compact shard map, which needs KVStore 0.1.0 or newer: upgrade this program", which its error names.
  std::string ToStored() const;

  friend bool operator==(const ShardMap& a, const ShardMap& b) { return a.ranges_ == b.ranges_; }

 private:
  explicit ShardMap(std::vector<ShardRange> ranges);
  std::vector<ShardRange> ranges_;
  // For each shard up to the last one that is open, the place of its range, or kClosed. Empty if each shard
  // has a range of its own, whose place is its number.
  std::vector<uint16_t> places_;
  uint32_t open_shards_ = 0;
};

}  // namespace kvstore
