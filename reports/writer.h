#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "reports/batch.h"
#include "reports/metadata.h"

namespace kvstore::reports {

struct WriteBatchOptions {
  /// Makes the write safe to repeat for kBatchMemoryMs: with the same ID and the same points it has happened
  /// once, however often it was tried, wherever a try broke off. Empty: each call is a write of its own.
  std::string batch;
  /// The values are added to those that are there (sets and distributions: united with them) rather than put
  /// in their place.
  bool add = false;
};

/// For how long a batch is known again: 30 days.
inline constexpr uint64_t kBatchMemoryMs = uint64_t{30} * 86'400'000;

/// Writes a batch: one chunk for each row that it touches, nothing is read but metadata. Of points with the
/// same series and time the last one counts, or with `add` their sum. Returns how many points were given.
///
/// A row's part of the batch becomes visible at once; different rows at different moments. After an error
/// some rows may be written and others not: repeat the write under its batch ID. NOT_FOUND or
/// FAILED_PRECONDITION, and nothing is written, if the report was dropped since its info in the batch was
/// read.
absl::StatusOr<uint64_t> WriteBatch(const Metadata& metadata, const Batch& batch,
                                    const WriteBatchOptions& options);

}  // namespace kvstore::reports
