#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

/// The binary log after a backup of a server, fetched to be played.
namespace kvstore::fleet_backup {

/// The transactions that SpoolLog has fetched.
struct SpooledLog {
  std::vector<std::filesystem::path> files;  ///< In order, as mariadb-binlog reads them.
  std::string last;  ///< The GTID position that a server has which has the backup and played them.
  /// The time (ms since 1970) as of which the server is when it has played them: the time that was asked for,
  /// if the log that was sent goes on there; else that of the last transaction, or of the backup.
  uint64_t as_of_ms = 0;
  uint64_t transactions = 0;
  uint64_t bytes = 0;
  bool at_end = true;  ///< The log that was sent ends there.
  std::string nodes;   ///< The nodes that processes shared in ZooKeeper then; empty: those in the backup.
};

/// Writes the transactions after a backup whose commits began before a time to files. After an error, some
/// files may be there.
///
/// at_ms   in whole seconds, as binary logs have times; the rest is cut off.
/// folder  is created.
///
/// DATA_LOSS            a segment is missing or damaged.
/// FAILED_PRECONDITION  the log has a gap before the time: the message says what was not sent, and the latest
///                      time before it.
absl::StatusOr<SpooledLog> SpoolLog(BlobStore& blobs, const backup::Manifest& base, uint64_t at_ms,
                                    const std::filesystem::path& folder);

/// Removes the transactions up to a GTID position from the beginning of spooled files: those that the
/// restored server has already.
absl::Status TrimLog(const SpooledLog& log, const std::string& position);

}  // namespace kvstore::fleet_backup
