#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

/// The open shards and their weights, by which a shard is chosen for a new object. An immutable value.
class Spread {
 public:
  /// weights  of some shards; where several name a shard, the first counts. Others have weight 1.
  Spread(const ShardMap& map, std::span<const ShardWeight> weights);
  /// shards  all shards and their weights, in order, as Shards returns them.
  explicit Spread(std::span<const ShardWeight> shards);
  /// Returns the shard for a number, which may be any: over all numbers, shards are chosen in proportion to
  /// their weights. Must not be called if no shard has a weight.
  uint32_t Choose(uint64_t random) const;
  /// Whether no shard has a weight.
  bool empty() const { return total_ == 0; }
  /// Returns the shards that have a weight, in order.
  ShardWeights Shards() const;
  friend bool operator==(const Spread&, const Spread&) = default;

 private:
  struct Segment {
    uint64_t end;  // sum of the weights of all shards up to `last`
    uint32_t last;
    uint32_t weight;
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  void Add(uint32_t shard, uint32_t weight);

  std::vector<Segment> segments_;
  uint64_t total_ = 0;
};

/// The spread in force, and those that were in force in the last day. A create with a request_id chooses its
/// shard by that; when it is retried after shards were opened or weights were set, its first attempt may have
/// gone to another shard, which an earlier spread tells. Thread-safe.
class Spreads {
 public:
  /// For how long a create may be retried with its request_id.
  static constexpr uint64_t kKeptMs = 86'400'000;

  /// How many earlier spreads are kept, the newest: each may cost a retried create a read on another shard.
  static constexpr size_t kKept = 8;

  /// file  where the spreads are stored for the next start; empty: nowhere. A file that does not decode is
  ///       ignored.
  Spreads(std::filesystem::path file, ShardWeights weights);
  void SetMap(const ShardMap& map);
  void SetWeights(const ShardWeights& weights);

  /// Returns the spread in force; null before the first map.
  std::shared_ptr<const Spread> current() const;
  /// Returns the shards that earlier spreads of the last day choose for a number, without the shard that the
  /// spread in force chooses; the newest first, each once. Allocates nothing if there are none.
  std::vector<uint32_t> EarlierShards(uint64_t number) const;

 private:
  struct Before {
    uint64_t until_ms;  // of the wall clock
    Spread spread;
  };
  void Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Puts the spread of map_ and weights_ in force, and stores it.
  void UpdateCurrent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Save() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::filesystem::path file_;
  mutable Mutex mutex_;
  std::optional<ShardMap> map_ ABSL_GUARDED_BY(mutex_);
  ShardWeights weights_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Spread> current_ ABSL_GUARDED_BY(mutex_);
  std::vector<Before> before_ ABSL_GUARDED_BY(mutex_);  // the newest first
};

}  // namespace kvstore::mysql
