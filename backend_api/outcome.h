#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "kvstore_api/in_doubt.h"

/// The meaning of a call's error beyond its code: whether a write may have happened all the same, and whether
/// the dataset is served elsewhere. Callers do not see the latter: the router waits, reads the catalog again,
/// and retries the call where the data is by then, within the call's deadline.
namespace kvstore {

/// Returns the same error, marked as that of a write that may or may not have happened, or may happen later
/// (IsInDoubt). A write that fails without the mark has changed nothing. The status must not be OK.
absl::Status MarkInDoubt(absl::Status status);

// ---- errors by which a backend refuses a call because its dataset migrates; the call has changed nothing
// ----

/// The dataset is served elsewhere: the catalog says where.
absl::Status ServedElsewhereError(std::string_view message);
/// Writes are held for a moment, during a cutover.
absl::Status WritesHeldError(std::string_view message);
/// Marks an error of a backend that does not have the dataset. It may have been migrated away long ago, so
/// the router retries the call for a short time, and returns this error if the catalog still names this
/// backend.
absl::Status GoneError(absl::Status status);

/// Whether an error is one of these three.
bool IsMigrating(const absl::Status& status);
/// Whether an error is a GoneError.
bool IsGone(const absl::Status& status);

}  // namespace kvstore
