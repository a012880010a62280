#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/map_source.h"

namespace kvstore {

/// Parses [{"range": [0, 511], "weight": 0}, ...]. INVALID_ARGUMENT says which entry is wrong and why.
absl::StatusOr<ShardWeights> ParseWeights(std::string_view json);
/// Returns a text that ParseWeights accepts.
std::string ToJson(const ShardWeights& weights);
/// Returns the weights with another weight for one range, in the order of shards and without overlaps.
ShardWeights WithWeight(const ShardWeights& weights, const ShardWeight& change);

/// Keeps the weights up to date with their source. If the source has none, cannot be read, or has bad ones,
/// the weights before stay in force. Thread-safe.
class WeightsWatcher {
 public:
  /// Reads the source once before it returns.
  ///
  /// source     Where the weights are read from; null if they never change.
  /// initial    The weights that are in force until the source has some.
  /// on_update  Is called with weights that come into force and differ from those before, by the constructor
  /// or by
  ///            the watcher's thread. Must not destroy the watcher. May be null.
  WeightsWatcher(std::unique_ptr<MapSource> source, ShardWeights initial,
                 std::function<void(const ShardWeights&)> on_update = nullptr);
  ~WeightsWatcher();

  std::shared_ptr<const ShardWeights> weights() const;

 private:
  /// Reads the source, and puts its weights in force if they are good.
  void Reload();
  void Run();

  const std::unique_ptr<MapSource> source_;
  const std::function<void(const ShardWeights&)> on_update_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // the source may have changed
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string refused_ ABSL_GUARDED_BY(mutex_);  // the last bad text, which is logged once
  std::shared_ptr<const ShardWeights> weights_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kvstore
