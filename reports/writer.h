#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "reports/batch.h"
#include "reports/metadata.h"

namespace kvstore::reports {

struct WriteBatchOptions {
  /// Makes the write safe to repeat for 30 days (kBatchMemoryMs): with the same ID and the same points it has
  /// happened once, however often it was tried, wherever a try broke off. The order of the points does not
  /// matter, except among those of one series and time. Empty: each call is a write of its own.
  std::string batch;
  /// The values are added to those that are there (sets and distributions: united with them) rather than put
  /// in their place.
  bool add = false;
};

/// Writes a batch: one chunk for each row that it touches, nothing is read but metadata. If points have the
/// same series and time the last one counts, or with `add` their sum. Returns how many points were given.
///
/// A row's part of the batch becomes visible at once; different rows at different moments. After an error
/// that is in doubt (IsInDoubt) some rows may be written and others not: repeat the write under its batch ID.
/// NOT_FOUND or FAILED_PRECONDITION if the report was dropped since its info in the batch was read, also
/// during the call: nothing stays of it then, unless the call's time is over. FAILED_PRECONDITION names the
/// batch, and nothing is written, if its ID is that of a batch with other points, or with another `add`.
absl::StatusOr<uint64_t> WriteBatch(const Metadata& metadata, const Batch& batch,
                                    const WriteBatchOptions& options);

}  // namespace kvstore::reports
