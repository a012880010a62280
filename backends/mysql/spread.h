#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/mysql/options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

/// Open shards by weight, to choose one for a new object. An immutable value.
class Spread {
 public:
  Spread(const ShardMap& map, std::span<const ShardWeight> weights);
  /// These shards and no others, in order, as Shards tells them.
  explicit Spread(std::span<const ShardWeight> shards);
  /// The shard at `random`, any number: over all numbers each comes up in proportion to its weight. Must not
  /// be called if none has a weight.
  uint32_t Choose(uint64_t random) const;
  bool empty() const { return total_ == 0; }
  /// Those that have a weight.
  ShardWeights Shards() const;
  friend bool operator==(const Spread&, const Spread&) = default;

 private:
  struct Segment {
    uint64_t end;  // of the weights added up
    uint32_t last;
    uint32_t weight;
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  void Add(uint32_t shard, uint32_t weight);

  std::vector<Segment> segments_;
  uint64_t total_ = 0;
};

/// The spread in force, and those before, for a day: a create with a request_id goes by that where it goes,
/// and one that is repeated may have gone elsewhere before shards were opened or weights were set.
/// Thread-safe.
class Spreads {
 public:
  /// How long a request_id is good for.
  static constexpr uint64_t kKeptMs = 86'400'000;

  /// So many are kept, the newest: each may cost a create that is tried again a look at another shard.
  static constexpr size_t kKept = 8;

  /// file  Where they are kept for the next start; empty: nowhere. One that does not decode is passed over.
  Spreads(std::filesystem::path file, ShardWeights weights);
  void SetMap(const ShardMap& map);
  void SetWeights(const ShardWeights& weights);

  /// Null before the first map.
  std::shared_ptr<const Spread> current() const;
  /// The shards that spreads of the last day choose for a number, apart from the one of now; the newest
  /// first, each once. Without an allocation if there are none.
  std::vector<uint32_t> Earlier(uint64_t number) const;

 private:
  struct Before {
    uint64_t until_ms;  // of the wall clock
    Spread spread;
  };
  void Load();
  /// Under mutex_.
  void Change();
  void Save() const;

  const std::filesystem::path file_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<ShardMap> map_;
  ShardWeights weights_;
  std::shared_ptr<const Spread> current_;
  std::vector<Before> before_;  // the newest comes first
};

}  // namespace kvstore::mysql
