#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "fleet_backup/binlog_segment.h"

namespace kvstore::fleet_backup {

/// A chain of segments, which follows the backup whose ID it has.
struct BinlogChain {
  std::string id;
  std::vector<std::string> segments;  ///< The names of the blobs, in order of their numbers.
};

/// Lists the chain of a backup. It has no segments if nothing was sent behind the backup.
absl::StatusOr<BinlogChain> ListChain(BlobStore& blobs, const std::string& backup);
/// Lists the chains that have what is behind a backup: the last one that began by that backup, and all later
/// ones, in order.
absl::StatusOr<std::vector<BinlogChain>> ListChainsBehind(BlobStore& blobs, const std::string& backup);

/// Reads a chain from its beginning, and calls `take` for each segment until it returns false. DATA_LOSS if a
/// segment is missing, damaged, or not the one behind the segment before; errors of `take` are returned.
absl::Status ReadChain(BlobStore& blobs, const BinlogChain& chain,
                       const std::function<absl::StatusOr<bool>(const BinlogSegment& segment)>& take);

/// Returns what processes shared in ZooKeeper behind a segment, encoded; empty if its chain does not have it
/// yet. Errors as of FetchBinlogSegment.
absl::StatusOr<std::string> NodesBehind(BlobStore& blobs, const BinlogSegment& segment);

}  // namespace kvstore::fleet_backup
