#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/zookeeper_options.h"

namespace kvstore {

/// Names a state of a node's data. It is another one after each change, also if the node was deleted and
/// created again, which begins its version anew.
struct ZooKeeperChange {
  int64_t transaction = 0;  ///< The transaction of ZooKeeper that wrote the data.
  int64_t at_ms = 0;        ///< When that was, which tells apart an ensemble that has lost all it had.
  friend bool operator==(const ZooKeeperChange&, const ZooKeeperChange&) = default;
};

/// The contents of a node.
struct ZooKeeperNode {
  std::string data;
  ZooKeeperChange change;
  int32_t version = 0;      ///< Counts the changes of the data.
  uint64_t changed_ms = 0;  ///< When the data was changed last, by the clock of ZooKeeper's servers.
};

/// One step of ZooKeeper::Change.
struct ZooKeeperStep {
  enum class Kind {
    kCreate,
    kCreateEphemeral,  ///< Creates a node that disappears with the session.
    kSet,
    kDelete,
    kCheck,  ///< Changes nothing, but fails unless the node exists and has the version.
  };
  Kind kind = Kind::kSet;
  std::string path;
  std::string data;
  int32_t version = -1;  ///< kSet, kDelete and kCheck fail unless the node has this version; -1: any version.
};

/// The names of the nodes below a node, and that node's version at the same moment.
struct ZooKeeperListing {
  std::vector<std::string> names;  ///< In no particular order.
  int32_t version = 0;
};

/// A session with ZooKeeper that renews itself: after it has expired, the next call begins another one.
/// Thread-safe.
///
/// Calls block, for at most call_timeout_ms or what is left until the deadline of the caller's CallScope.
/// Their errors are: UNAVAILABLE, with the servers' names, if they cannot be reached or do not answer in time
/// (the outcome of a write is unknown then); NOT_FOUND and ALREADY_EXISTS, with the node; FAILED_PRECONDITION
/// if a version has changed; PERMISSION_DENIED if the user lacks a right.
class ZooKeeper {
 public:
  /// While one of these lives, calls of this thread ignore the deadline of its CallScope, and end with
  /// call_timeout_ms alone. For the last steps of something that must not be left half done because its
  /// caller has no time left.
  class IgnoreDeadline {
   public:
    IgnoreDeadline() : before_(std::exchange(ignores_deadline_, true)) {}
    ~IgnoreDeadline() { ignores_deadline_ = before_; }
    IgnoreDeadline(const IgnoreDeadline&) = delete;
    IgnoreDeadline& operator=(const IgnoreDeadline&) = delete;

   private:
    const bool before_;
  };

  /// The largest node that the functions below write. ZooKeeper refuses nodes beyond about 1 MiB, by closing
  /// the connection.
  static constexpr size_t kMaxNodeBytes = size_t{1000} << 10;

  /// Says what becomes of a session while its servers cannot be reached.
  enum class Away : uint8_t {
    /// It tries to connect several times a second, so that the session and its ephemeral nodes survive.
    kKeepsTrying,
    /// It tries while a call waits. A call that found no connection gives the session up, and the next call
    /// begins another one. For those who keep nothing in the session, and whose calls are many processes'
    /// that must not all try all the time.
    kTriesInCalls,
  };

  /// Returns at once, whether or not the servers can be reached.
  ///
  /// on_event  Is called by a thread of the client when a watched node may have changed, and when the state
  /// of the
  ///           session has. A watch fires once, and is lost with its session: read the node again to renew
  ///           it. `on_event` must not block, nor call this object. May be null.
  ZooKeeper(ZooKeeperOptions options, std::function<void()> on_event, Away away = Away::kKeepsTrying);
  ~ZooKeeper();
  ZooKeeper(const ZooKeeper&) = delete;
  ZooKeeper& operator=(const ZooKeeper&) = delete;

  /// Reads a node. With `watch`, on_event is called when the node changes, or is created if it does not
  /// exist.
  absl::StatusOr<ZooKeeperNode> Get(const std::string& path, bool watch);
  /// Says in which state a node's data is, without reading the data. `watch` as of Get.
  absl::StatusOr<ZooKeeperChange> Stat(const std::string& path, bool watch);
  /// Writes a node if it still has this version.
  absl::Status Set(const std::string& path, std::string_view data, int32_t version);
  /// Creates a node, and those above it that are missing.
  ///
  /// open  Whether every user may write the node, and create and delete nodes below it.
  absl::Status Create(const std::string& path, std::string_view data, bool open = false);
  /// Creates a node that disappears with this session. The node above it must exist.
  absl::Status CreateEphemeral(const std::string& path, std::string_view data);
  /// Deletes a node, whatever its version.
  absl::Status Delete(const std::string& path);
  /// Returns the names of the nodes below a node, in no particular order.
  absl::StatusOr<std::vector<std::string>> Children(const std::string& path);
  /// Returns the same, and the version that the node above them had at the same moment.
  absl::StatusOr<ZooKeeperListing> List(const std::string& path);
  /// Does all steps in one transaction, or none; returns the error of the first step that failed.
  absl::Status Change(std::vector<ZooKeeperStep> steps);
  /// Waits until this session sees all that any session has written before.
  absl::Status Sync(const std::string& path);
  /// Whether the session is connected now. Does not wait.
  bool connected();

 private:
  static thread_local bool ignores_deadline_;

  class Handle;
  class WaitBudget;

  /// Returns the connected session; begins one if there is none, or the last one has ended.
  absl::StatusOr<std::shared_ptr<Handle>> AwaitConnection(const WaitBudget& budget);
  absl::Status ToStatus(int code, const WaitBudget& budget, std::string_view action,
                        const std::string& path) const;
  absl::Status CreateOne(const std::string& path, std::string_view data, bool ephemeral, bool open);

  const ZooKeeperOptions options_;
  const std::function<void()> on_event_;
  const Away away_;
  Mutex mutex_;
  std::condition_variable state_changed_;
  std::shared_ptr<Handle> handle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore
