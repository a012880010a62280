#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "catalog/shared_nodes.h"
#include "fleet_backup/log_spool.h"
#include "fleet_backup/scratch_server.h"
#include "kvstore_api/types.h"
#include "shardops/move_record.h"

namespace kvstore::fleet_backup {

struct HostRestoreOptions {
  /// The server as it was at this time, in ms since 1970, to a second; 0: as the backup has it.
  uint64_t at_ms = 0;
  /// Only these shards are kept; all other databases are dropped.
  std::optional<shardops::MoveRange> shards;
  /// Called with a line for people when a step begins. May be null.
  std::function<void(const std::string&)> report;
  /// Told how far a step is: "restore" with the bytes of objects, "play" with those of SQL, whose total is
  /// not known (0). If it returns false, the restore ends with CANCELLED. May be null.
  std::function<bool(std::string_view step, uint64_t done, uint64_t total)> progress;
};

/// The state of a server that was restored.
struct RestoredHost {
  SpooledLog log;     ///< The log that was played.
  std::string gtid;   ///< The GTID position that the server has.
  SharedNodes nodes;  ///< The nodes that processes shared in ZooKeeper then.
};

/// Called while the restored server runs, when all its data is there.
using WithServer = std::function<absl::Status(ScratchServer& server, const RestoredHost& restored)>;

/// Restores a backup of a server into a folder:
///
///   mysql/  the server's data, which a mariadbd can be started on when this has returned OK
///   log/    the binary logs that were played, if a time was given, as mariadb-binlog reads them
///
/// and, if shards were given, what a ScratchServer needs to start again. Without shards nothing of that is
/// left, so that mysql/ is the data of a server of the fleet, which can replicate from where it is.
///
/// folder  must not exist, or be empty. If this fails before the data can be used, what was written is
///         removed; later, it is left to be looked at, and the error says so.
/// with_server  may be null.
///
/// INVALID_ARGUMENT     the backup is not one of a server, or was finished after at_ms.
/// CANCELLED            HostRestoreOptions::progress has ended it.
/// DATA_LOSS            an object or a part of the log is missing or damaged.
/// FAILED_PRECONDITION  the log has a gap; or the server did not have the shards at that time; or one of
///                      MariaDB's programs is not installed.
/// INTERNAL             one of these programs failed, with what it said.
absl::StatusOr<RestoredHost> RestoreHost(const backup::Manifest& manifest, BlobStore& blobs,
                                         const std::filesystem::path& folder,
                                         const HostRestoreOptions& options, const WithServer& with_server);

}  // namespace kvstore::fleet_backup
