#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/log_segment.h"
#include "blobstore/blob_store.h"

/// The chain of segments that a backup of an embedded store is in (log_segment.h): what a restore replays,
/// and what a verification reads.
namespace kvstore::backup {

/// Returns the names of the segments of the chain that a backup is in, by their numbers, ascending; none if
/// no log was sent.
absl::StatusOr<std::vector<std::string>> ListLogChain(BlobStore& blobs, const std::string& backup);

/// A segment and the checksum of its bytes.
struct FetchedSegment {
  LogSegment segment;
  std::string sha256;
};

/// Reads a segment. DATA_LOSS if it is missing; others as DecodeSegment.
absl::StatusOr<FetchedSegment> FetchSegment(BlobStore& blobs, const std::string& name);

/// Returns the place of the first segment of a chain that does not end before a change; names.size() if all
/// do. Errors as FetchSegment.
absl::StatusOr<size_t> FindFirstSegment(BlobStore& blobs, const std::vector<std::string>& names,
                                        uint64_t change);

}  // namespace kvstore::backup
