#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "reports/metadata.h"
#include "reports/rows.h"

namespace kvstore::reports {

struct CompactionResult {
  uint64_t rows = 0;            ///< Looked at.
  uint64_t chunks_merged = 0;   ///< Chunks that became one with others.
  uint64_t chunks_written = 0;  ///< Chunks that they became.
  uint64_t rows_expired = 0;    ///< Removed because of the report's retention.
  uint64_t bytes_before = 0;    ///< The size of all chunks of the rows that were looked at.
  uint64_t bytes_after = 0;
};

struct CompactionOptions {
  /// A row with fewer live chunks is left as it is.
  size_t min_chunks = 2;
  /// Chunks are merged as long as they have no more bytes than this together.
  size_t max_bytes = size_t{3} << 20;
  /// Rows whose last put has a lower timestamp (in ms) are left as they are, unread; 0: none is.
  uint64_t changed_since_ms = 0;
  /// For CompactRow: batches that the store took before this timestamp (in ms) are not repeated any more.
  /// CompactReport finds out by itself.
  uint64_t batches_since_ms = 0;
  /// Called between two rows; an error ends the work with it. May be null.
  std::function<absl::Status()> pause;
};

/// Merges the chunks of a report's rows and removes rows that are past its retention, with their roll-ups. No
/// query changes its answer, and no roll-up is out of date because of it. Killed at any point, nothing counts
/// twice: the new chunk says what it stands for, readers ignore that from then on, and only then is it
/// deleted. If two compactions race for a row, one wins and the other leaves the row alone. NOT_FOUND, and no
/// row is left, if the report is dropped meanwhile.
absl::StatusOr<CompactionResult> CompactReport(const Metadata& metadata, const std::string& report,
                                               const CompactionOptions& options);

/// The same for one row as it was read.
absl::Status CompactRow(const Metadata& metadata, const StoredRow& row, const CompactionOptions& options,
                        CompactionResult& result);

/// Chunks of a row from `begin` to `end`, exclusive, of those that are live.
struct Run {
  size_t begin = 0;
  size_t end = 0;
};
/// The longest run of neighbours that together have at most `max_bytes` and can become one chunk. Only
/// neighbours can be merged: a chunk between two others stands between them. Where a chunk of the run or an
/// older one has real numbers, numbers that are added are merged from the oldest chunk on alone, because the
/// sum depends on the order.
Run ChooseRun(const std::vector<LiveChunk>& live, size_t max_bytes);

}  // namespace kvstore::reports
