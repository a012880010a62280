#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/map_source.h"
#include "shardmap/shard_map.h"

namespace kvstore {

struct WatcherOptions {
  /// The file in which the last good map is saved, to start with while the source is down; empty for none.
  std::filesystem::path cache;
  /// The space whose map it is. The number of mod shards must never change.
  ShardSpace space = ShardSpace::kId;
  /// Is called with each map of the source that comes into force and differs from the one before: with the
  /// first by Start, with later ones by the watcher's thread. Not called with the map of the cache. Must not
  /// destroy the watcher. May be null.
  std::function<void(const ShardMap&)> on_update;
};

/// Tells metrics and people what the watcher has seen so far.
struct WatcherStats {
  uint64_t updates = 0;   ///< Maps of the source that came into force, including the first.
  uint64_t refused = 0;   ///< Bad edits that were refused; the map before stayed in force.
  uint64_t failures = 0;  ///< Reads of the source that failed.
  /// The map in force is that of the cache file, because the source has not been reached yet.
  bool from_cache = false;
  /// When the source was last read successfully; when watching began if it never was.
  std::chrono::steady_clock::time_point read_at;
  /// Why the source's text is not in force; OK if it is.
  absl::Status problem;
};

/// Keeps the shard map in force up to date with its source. A bad edit is refused: the last good map stays in
/// force, and the log and stats() say why. While the source cannot be reached nothing changes. Thread-safe.
///
/// How soon a change is in force:
/// - A map in ZooKeeper is read at once when its watch reports a change. With 10,000 clients on three servers
///   that is within seconds for all of them (docs/capacity.md has measured figures).
/// - If a watch is lost, or the source is a file: after the source's poll interval, give or take a fifth, so
///   that clients which were started together do not read together.
/// - After a read has failed, it is tried again after a random time of up to a second, which doubles with
/// each
///   further failure to 16 seconds at most ("full jitter").
class ShardMapWatcher {
 public:
  /// Reads the map from the source, or else from the cache, and begins to watch. Fails if neither has a good
  /// map, with the source's error.
  static absl::StatusOr<std::unique_ptr<ShardMapWatcher>> Start(std::unique_ptr<MapSource> source,
                                                                WatcherOptions options);
  ~ShardMapWatcher();

  /// Returns the map in force. The reference stays valid, also after the map was replaced, as long as the
  /// watcher lives. Takes no lock, and a nanosecond or two.
  const ShardMap& map() const { return *current_.load(std::memory_order_acquire); }

  WatcherStats stats() const;

 private:
  ShardMapWatcher(std::unique_ptr<MapSource> source, WatcherOptions options);

  absl::Status StartFromCache();
  /// Puts the text that was read from the source in force, or refuses it; returns why. Called by Start and
  /// the thread only.
  absl::Status Adopt(const absl::StatusOr<std::optional<std::string>>& text);
  /// Does the same with a text that has changed.
  absl::Status AdoptText(const std::string& text);
  void PutInForce(ShardMap map);
  void Run();

  const std::unique_ptr<MapSource> source_;
  const WatcherOptions options_;
  // All maps that were in force are retained, so that readers need not count references and a look-up is a
  // single load. Operators edit by hand, and a map is some kilobytes.
  std::vector<std::unique_ptr<const ShardMap>>
      maps_;  // changed by Start and then by the thread, never by both
  std::atomic<const ShardMap*> current_{nullptr};
  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // the source may have changed
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string refused_text_ ABSL_GUARDED_BY(mutex_);   // the last bad text, which is logged once
  absl::Status verdict_ ABSL_GUARDED_BY(mutex_);       // why the last text that was read is not in force
  unsigned failed_reads_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  WatcherStats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kvstore
