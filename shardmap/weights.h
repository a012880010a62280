#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "shardmap/map_source.h"

namespace kvstore {

/// New objects that name no shard go to shards first..last in proportion to `weight`; 0: none go there.
struct ShardWeight {
  static constexpr uint32_t kMax = 1'000'000;
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t weight = 1;
  friend bool operator==(const ShardWeight&, const ShardWeight&) = default;
};

/// Shards that none of these name have weight 1; the first that names one counts.
using ShardWeights = std::vector<ShardWeight>;

/// Reads [{"range": [0, 511], "weight": 0}, ...]. INVALID_ARGUMENT says which entry is wrong and why.
absl::StatusOr<ShardWeights> ParseWeights(std::string_view json);
/// Text that ParseWeights reads back.
std::string ToJson(const ShardWeights& weights);
/// The same with another weight for one range, in order of shards and without overlaps.
ShardWeights With(const ShardWeights& weights, const ShardWeight& change);

/// Keeps the weights up to date with their source. Where there are none, or they cannot be read, or they are
/// bad, those before stay in force. Thread-safe.
class WeightsWatcher {
 public:
  /// Reads the source once before it returns.
  ///
  /// source     Null: there is none.
  /// initial    In force until the source has some.
  /// on_update  Called with weights that come into force and differ from those before, from here or from the
  ///            watcher's thread. May be null. Must not stop the watcher.
  WeightsWatcher(std::unique_ptr<MapSource> source, ShardWeights initial,
                 std::function<void(const ShardWeights&)> on_update = nullptr);
  ~WeightsWatcher();

  std::shared_ptr<const ShardWeights> weights() const;

 private:
  void Take();
  void Run();

  const std::unique_ptr<MapSource> source_;
  const std::function<void(const ShardWeights&)> on_update_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool wanted_ = false;
  bool stopping_ = false;
  bool missing_ = false;
  std::string refused_;
  std::shared_ptr<const ShardWeights> weights_;
  std::thread thread_;
};

}  // namespace kvstore
