#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardops/channel.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// The session that loads a copy holds this lock of the server; DropDatabases waits for it.
inline constexpr char kLoadingLock[] = "kvstore_loading";

struct CopyOptions {
  /// Databases to copy; if empty, all but the server's own.
  std::vector<std::string> databases;
  /// The ID of the connection that has claimed the target (HostAdmin::ClaimConnectionId). If that connection
  /// does not hold the claim any more when the load begins, nothing is loaded.
  uint64_t claim = 0;
  /// Keeps the copy out of the target's binary log, so that the target's slaves do not get it.
  bool unlogged = false;
  /// Is called with the bytes of SQL that were copied so far; the copy ends if it returns false. May be null.
  std::function<bool(uint64_t)> progress;
};

/// Copies databases from host to host by `mariadb-dump | mariadb`, of Debian's mariadb-client, which must be
/// in the PATH. Clients of the source go on meanwhile; the copy is a consistent snapshot.
///
/// Returns the position in the source's binary log that the snapshot has.
///
/// A copy that fails leaves what was loaded so far; the caller removes it (DropDatabases). CANCELLED if
/// `progress` returned false; FAILED_PRECONDITION if a program is not installed; INTERNAL with what a program
/// wrote to its standard error.
absl::StatusOr<Position> CopyDatabases(const Host& source, const Host& target, const Access& access,
                                       const CopyOptions& options);

/// Creates at the target the users of the source that it lacks, with their rights. The binary log of the
/// target does not get them, so its slaves do not either.
absl::Status CopyUsers(HostAdmin& source, HostAdmin& target);

/// Drops those of the databases that exist. If a copy to this host (CopyDatabases) still loads, although its
/// command has died, this waits up to 10 s for its end, and returns UNAVAILABLE if it has not ended by then.
///
/// unlogged  Keeps this out of the host's binary log, so that its slaves keep their databases.
absl::Status DropDatabases(HostAdmin& host, const std::vector<std::string>& databases, bool unlogged);

}  // namespace kvstore::shardops
