#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvstore {

struct ZooKeeperOptions {
  std::string servers;  ///< "host:port,host:port"
  /// "user:password" of the digest scheme; empty: none. Nodes that are then created can be written by this
  /// user only.
  std::string auth;
  uint32_t session_timeout_ms = 10'000;
  uint32_t call_timeout_ms = 5'000;  ///< How long a call waits for a connection and an answer.
};

/// What a node holds.
struct ZooKeeperNode {
  std::string data;
  int32_t version = 0;  ///< Counts the changes.
};

/// One step of ZooKeeper::Change.
struct ZooKeeperStep {
  enum class Kind {
    kCreate,
    kCreateEphemeral,  ///< A node that goes with the session.
    kSet,
    kDelete,
    kCheck,  ///< Changes nothing: the node must be there, at the version.
  };
  Kind kind = Kind::kSet;
  std::string path;
  std::string data;
  int32_t version = -1;  ///< Set, delete and check: only if the node has this version; -1: whichever.
};

/// What is below a node, and the node's version at that moment.
struct ZooKeeperListing {
  std::vector<std::string> names;  ///< In no order.
  int32_t version = 0;
};

/// A session with ZooKeeper that renews itself: when it has expired, the next call begins another.
/// Thread-safe.
///
/// Errors: UNAVAILABLE names the servers (not reachable, or no answer in time), NOT_FOUND and ALREADY_EXISTS
/// the node, FAILED_PRECONDITION a version that has changed, PERMISSION_DENIED a right that is missing.
class ZooKeeper {
 public:
  /// ZooKeeper refuses nodes beyond about 1 MiB by cutting the connection.
  static constexpr size_t kMaxNodeBytes = size_t{1000} << 10;

  /// Returns at once, whether or not the servers can be reached.
  ///
  /// on_event  called from a thread of the client, when a watched node may have changed and when the
  /// session's state did. A
  ///           watch fires once, and is lost with its session: read again to renew it. Must not block, nor
  ///           call this.
  ZooKeeper(ZooKeeperOptions options, std::function<void()> on_event);
  ~ZooKeeper();
  ZooKeeper(const ZooKeeper&) = delete;
  ZooKeeper& operator=(const ZooKeeper&) = delete;

  /// Reads a node; with `watch`, on_event is called when it changes.
  absl::StatusOr<ZooKeeperNode> Get(const std::string& path, bool watch);
  /// Writes a node if its version is still this one.
  absl::Status Set(const std::string& path, std::string_view data, int32_t version);
  /// Makes a node, and its parents if they are missing.
  ///
  /// open  Everybody may write it, and make and remove nodes below, whoever the user is.
  absl::Status Create(const std::string& path, std::string_view data, bool open = false);
  /// Makes a node that goes with this session; its parents must be there.
  absl::Status CreateEphemeral(const std::string& path, std::string_view data);
  absl::Status Delete(const std::string& path);
  /// The names of the nodes below one, in no order.
  absl::StatusOr<std::vector<std::string>> Children(const std::string& path);
  /// The same with the version that the node above had at that very moment.
  absl::StatusOr<ZooKeeperListing> List(const std::string& path);
  /// All steps, or none: the error of the first that cannot be done.
  absl::Status Change(std::vector<ZooKeeperStep> steps);
  /// Waits until this session sees what was written before.
  absl::Status Sync(const std::string& path);
  /// Whether there is a session now.
  bool connected();

 private:
  class Handle;

  absl::StatusOr<std::shared_ptr<Handle>> Connected();
  absl::Status ToStatus(int code, std::string_view action, const std::string& path) const;
  absl::Status CreateOne(const std::string& path, std::string_view data, bool ephemeral, bool open);

  const ZooKeeperOptions options_;
  const std::function<void()> on_event_;
  std::mutex mutex_;
  std::condition_variable state_changed_;
  std::shared_ptr<Handle> handle_;  // guarded by mutex_
};

}  // namespace kvstore
