#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cached/protocol/cache.h"
#include "backends/cached/protocol/view_keeper.h"
#include "kvstore_api/open.h"

namespace kvstore::cached {

/// The state of a cache server, for operators.
struct ServerState {
  std::string name;  ///< "memcached host:port"
  CacheKind kind = CacheKind::kObjects;
  bool suspended = false;
  uint64_t suspended_ms = 0;   ///< When (ms since 1970); 0 if it is not.
  absl::Status problem;        ///< Why it does not answer; OK if it does.
  std::optional<Guard> guard;  ///< Nullopt if it does not answer, or has none.
};

/// All caches of one backend. Thread-safe.
class Caches {
 public:
  /// Returns at once: ZooKeeper and the servers are connected to when they are needed.
  ///
  /// node  that of the view (ViewNode). If there is none, it is made, without servers: UseServers brings the
  ///       servers of `options` into force.
  Caches(const CacheOptions& options, const ZooKeeperOptions& zookeeper, const std::string& node);

  /// Whether the certificates and keys of the options can be used. INVALID_ARGUMENT names the field, the file
  /// and the reason.
  absl::Status CheckTls();

  Cache& objects() { return objects_; }
  Cache& mappings() { return mappings_; }
  ViewKeeper& view() { return view_; }

  /// Makes the servers of the options, and its lease and quarantine, those that all processes use. No cache
  /// is read meanwhile, and none afterwards until its quarantine is over. The same call again completes what
  /// was cut short.
  ///
  /// stopped  the names of servers of the list before that may be unreachable because they are stopped, and
  ///          have lost their memory with that. FAILED_PRECONDITION if another one cannot be reached: a
  ///          process that can, and does not hear of the new list, would go on to mark only that one.
  ///
  /// ABORTED if another call, of any process, came in between.
  absl::Status UseServers(const std::set<std::string>& stopped);

  /// Forgets all that is cached: no cache is read until its quarantine is over. Errors as of Cache::Drop.
  absl::Status Drop();

  /// The view in force, and what its servers say. UNAVAILABLE if ZooKeeper cannot be reached.
  struct State {
    View view;
    bool as_configured = false;  ///< The view has the servers and times of the options.
    std::vector<ServerState> servers;
  };
  absl::StatusOr<State> Look();

  /// Suspends the servers that do not answer, before a moment at which there is no time to wait for that.
  /// Errors as of Cache::Suspend.
  absl::Status SuspendDead(CacheKind kind);

 private:
  bool IsAsConfigured(const View& view) const;
  Cache& CacheOf(CacheKind kind) { return kind == CacheKind::kObjects ? objects_ : mappings_; }

  const CacheOptions options_;
  const std::shared_ptr<TlsClient> memcached_tls_;  // null: not encrypted
  const std::shared_ptr<TlsClient> redis_tls_;      // the same
  const Cache::OpenServer open_memcached_;
  const Cache::OpenServer open_redis_;
  ViewKeeper view_;
  Cache objects_;
  Cache mappings_;
};

}  // namespace kvstore::cached
