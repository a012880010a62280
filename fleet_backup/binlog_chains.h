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

/// Lists the segments that continue a backup; none if nothing was sent after it. Errors as of BlobStore.
absl::StatusOr<BinlogChain> ListChain(BlobStore& blobs, const std::string& backup);
/// Lists, in order, the chains from which the time after a backup can be replayed: the newest chain that
/// began no later than the backup, and all later ones.
absl::StatusOr<std::vector<BinlogChain>> ListChainsAfter(BlobStore& blobs, const std::string& backup);

/// Reads a chain from its beginning, and calls `take` for each segment until it returns false. DATA_LOSS if a
/// segment is missing, damaged, or not the one after the segment before; errors of `take` are returned.
absl::Status ReadChain(BlobStore& blobs, const BinlogChain& chain,
                       const std::function<absl::StatusOr<bool>(const BinlogSegment& segment)>& take);

/// Returns the shared ZooKeeper nodes (catalog/shared_nodes.h) as they were at the end of a segment, encoded;
/// empty if the chain has no copy yet. Returns the errors of FetchBinlogSegment.
absl::StatusOr<std::string> NodesAfter(BlobStore& blobs, const BinlogSegment& segment);

}  // namespace kvstore::fleet_backup
