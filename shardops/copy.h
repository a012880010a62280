#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardops/channel.h"
#include "shardops/host.h"

namespace kvstore::shardops {

struct CopyOptions {
  /// Databases to copy; none: all but the server's own.
  std::vector<std::string> databases;
  /// The connection by which the target is claimed (HostAdmin::ClaimNumber): nothing is loaded once it is
  /// not.
  uint64_t claim = 0;
  /// The target's slaves do not get the copy.
  bool unlogged = false;
  /// Bytes of SQL that were passed on; false ends it. May be null.
  std::function<bool(uint64_t)> progress;
};

/// Copies databases from host to host: `mariadb-dump | mariadb`, of Debian's mariadb-client, which must be in
/// the PATH. Clients of the source go on meanwhile; the copy is of one moment.
///
/// Returns the position in the source's binary log of that moment.
///
/// What was begun stays: the caller removes it (DropDatabases). CANCELLED if progress says so; INTERNAL with
/// what the programs say.
absl::StatusOr<Position> CopyDatabases(const Host& source, const Host& target, const Access& access,
                                       const CopyOptions& options);

/// Gives a host the users of another that it lacks, and their rights. Not its slaves.
absl::Status CopyUsers(HostAdmin& source, HostAdmin& target);

/// Removes databases, those that are there. Waits for the end of a copy to this host whose process has died.
///
/// unlogged  The host's slaves keep theirs.
absl::Status DropDatabases(HostAdmin& host, const std::vector<std::string>& databases, bool unlogged);

}  // namespace kvstore::shardops
