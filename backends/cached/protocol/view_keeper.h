#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "backends/cached/protocol/boot_clock.h"
#include "backends/cached/protocol/ring.h"
#include "backends/cached/protocol/view.h"
#include "base/mutex.h"
#include "base/snapshot.h"
#include "coordination/zookeeper.h"

namespace kvstore::cached {

/// A view as this process knows it.
class KnownView {
 public:
  KnownView(View v, std::string t)
      : view(std::move(v)), text(std::move(t)), memcached(view.memcached), redis(view.redis) {}

  const View view;
  const std::string text;  ///< The text of the view's node in ZooKeeper.
  const Ring memcached;
  const Ring redis;
  /// Since when the process knows that a server is suspended, by its name.
  std::map<std::string, BootClock::time_point> suspended_since;

  /// Whether a change of the view that this process has not seen can only be so young that whoever has made
  /// it still waits.
  bool Holds() const {
    return BootClock::now() < BootClock::time_point(BootClock::duration(holds_until_.load()));
  }

 private:
  friend class ViewKeeper;
  mutable std::atomic<int64_t> holds_until_{0};
};

/// Keeps the view of a backend's caches up to date with ZooKeeper. A process may trust what it knows for a
/// *lease* after it has asked for it; whoever changes the view waits for as long before he relies on it.
///
/// Asking is a read and then a transaction that checks what was read: a server of ZooKeeper answers reads,
/// and even a sync, from what it knows, also if it leads others that have left it (ZOOKEEPER-1675).
/// Thread-safe.
class ViewKeeper {
 public:
  /// Begins to watch the node. If there is none, it is made with `first`.
  ViewKeeper(const ZooKeeperOptions& options, std::string path, View first);
  ~ViewKeeper();

  /// Returns the view as last read, which may be outdated; null until it was read once.
  std::shared_ptr<const KnownView> Load() const { return known_.Load(); }
  /// Asks ZooKeeper, or waits for the answer that another thread waits for. UNAVAILABLE if it cannot be
  /// reached; at once if that was so a moment ago. DEADLINE_EXCEEDED when the call's time is over.
  absl::Status Refresh();
  /// Changes the view, and returns when this process knows the change. `change` may be called more than once;
  /// if it returns false nothing is to be changed.
  absl::Status Change(const std::function<bool(View&)>& change);

 private:
  /// A thread that asks has the turn; others wait.
  enum class Turn : uint8_t { kMine, kAnswered };
  /// Waits for the turn; if `share` is set, the answer to another thread that came meanwhile will do.
  absl::StatusOr<Turn> TakeTurn(bool share);
  void EndTurn(const absl::Status& status);
  // Only by the thread that has the turn:
  absl::Status Read();
  void Adopt(const ZooKeeperNode& node, View view, BootClock::time_point asked);

  void Run();

  const std::string path_;
  const View first_;
  Snapshot<KnownView> known_{nullptr};
  int32_t version_ = -1;  // of the node, as it is in known_; of the thread that has the turn
  Mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;    // the view may have changed
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;    // a thread has the turn
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;     // how many turns have begun
  uint64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;  // the last of them that had an answer
  BootClock::time_point failed_ ABSL_GUARDED_BY(mutex_);
  absl::Status problem_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  ZooKeeper zookeeper_;
  std::thread thread_;
};

/// The node of the view of a backend, below the root of the store.
std::string ViewNode(std::string_view root, std::string_view backend);

}  // namespace kvstore::cached
