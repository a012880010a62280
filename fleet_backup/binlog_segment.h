#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"

/// The segments of a pair's binary log in the store of its backups. docs/backup-format.md is for those who
/// read them with other programs; golden tests pin the form.
///
///   log/CHAIN/NUMBER   a segment: two lines of JSON, as a manifest has them, and the log, packed by zstd
///
/// Names, chains and numbers are those of the log of an embedded store (backup/log_segment.h). The part of a
/// chain before the end of its backup is there twice, in the chain before, too; transactions are told apart
/// by their GTIDs.
namespace kvstore::fleet_backup {

/// The most bytes of log in a segment. It usually has some MiB; one transaction may be far larger.
inline constexpr uint64_t kMaxLogBytes = uint64_t{1} << 30;

struct BinlogSegment {
  std::string chain;
  uint64_t number = 0;    ///< In the chain, from 1 on.
  std::string previous;   ///< The SHA-256 of the bytes of the segment before; empty for the first one.
  std::string after;      ///< The GTID position after which it begins.
  std::string last;       ///< The position that its end has.
  uint64_t first_ms = 0;  ///< The time of its first transaction; without one, when the segment was made.
  uint64_t last_ms = 0;   ///< The latest time of one.
  uint64_t transactions = 0;
  /// The shared ZooKeeper nodes (catalog/shared_nodes.h) as they were after the last transaction; empty: the
  /// same as in the segment before.
  std::string nodes;
  uint64_t nodes_ms =
      0;  ///< With nodes, when they were read; 0: not known, as in segments of earlier versions.
  /// The number of the segment that has the nodes which are in force after this one; 0: none has, so they are
  /// those of the backup.
  uint64_t nodes_in = 0;
  std::string log;  ///< An event of format and transactions (ReadGroups); may be empty.

  bool operator==(const BinlogSegment&) const = default;
};

std::string EncodeBinlogSegment(const BinlogSegment& segment);
/// Decodes a segment, whose bytes anybody may have written. DATA_LOSS, with the name of the blob, if it is
/// damaged, or if its transactions are not those between its positions; FAILED_PRECONDITION if a newer
/// version wrote it.
///
/// blob  its name, which says its chain and number.
absl::StatusOr<BinlogSegment> DecodeBinlogSegment(std::string_view bytes, std::string_view blob);

/// A segment, and the checksum by which the next one names it.
struct FetchedSegment {
  BinlogSegment segment;
  std::string sha256;
};
/// Reads a segment of a store. DATA_LOSS also if it is missing.
absl::StatusOr<FetchedSegment> FetchBinlogSegment(BlobStore& blobs, const std::string& blob);

}  // namespace kvstore::fleet_backup
