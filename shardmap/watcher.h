#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "shardmap/map_source.h"
#include "shardmap/shard_map.h"

namespace kvstore {

struct WatcherOptions {
  /// Where the last good map is kept, for a start while the source is down; empty: nowhere.
  std::filesystem::path cache;
  /// A map of mod shards, whose number of shards never changes.
  bool mod = false;
  /// Called with each map of the source that comes into force and differs from the one before: the first from
  /// Start, later ones from the watcher's thread. Not called for the map of the cache. May be null. Must not
  /// stop the watcher.
  std::function<void(const ShardMap&)> on_update;
};

/// What the watcher has seen; for metrics and for people.
struct WatcherStats {
  uint64_t updates = 0;   ///< Maps of the source that came into force, the first included.
  uint64_t refused = 0;   ///< Bad edits that were seen; the map before stayed in force.
  uint64_t failures = 0;  ///< Reads of the source that failed.
  bool from_cache =
      false;  ///< The map in force is that of the cache file, because the source has not been reached yet.
  std::chrono::steady_clock::time_point
      read_at;  ///< When the source was last read; when watching began if never.
  /// Why the source's text is not in force; OK if it is.
  absl::Status problem;
};

/// Keeps the shard map in force up to date with its source. A bad edit is refused: the last good map stays,
/// the log and stats() say why. A source that cannot be reached changes nothing. Thread-safe.
class ShardMapWatcher {
 public:
  /// Reads the map, from the source or else from the cache, and begins to watch.
  ///
  /// Fails if neither gives a good map: with what is wrong with the source's.
  static absl::StatusOr<std::unique_ptr<ShardMapWatcher>> Start(std::unique_ptr<MapSource> source,
                                                                WatcherOptions options);
  ~ShardMapWatcher();

  /// The map in force. Takes no lock, a nanosecond or two. Valid as long as the watcher lives.
  const ShardMap& map() const { return *current_.load(std::memory_order_acquire); }

  WatcherStats stats() const;

 private:
  ShardMapWatcher(std::unique_ptr<MapSource> source, WatcherOptions options);

  absl::Status StartFromCache();
  /// Takes what the source gave: in force, or refused.
  absl::Status Take(const absl::StatusOr<std::string>& text);
  void PutInForce(ShardMap map);
  void Run();

  const std::unique_ptr<MapSource> source_;
  const WatcherOptions options_;
  // Readers hold no reference, so that a look-up is a single load: all maps that were in force are kept.
  // Operators edit by hand; a map is some kilobytes.
  std::vector<std::unique_ptr<const ShardMap>> maps_;  // changed by Start and the thread only
  std::atomic<const ShardMap*> current_{nullptr};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool wanted_ = false;  // the source may have changed
  bool stopping_ = false;
  std::string refused_text_;
  WatcherStats stats_;
  std::thread thread_;
};

}  // namespace kvstore
