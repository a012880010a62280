#pragma once

#include "absl/status/status.h"

namespace kvstore {

/// The same error, marked as one of a write that may or may not have happened. Where a write fails without
/// the mark, nothing was changed.
absl::Status MarkInDoubt(absl::Status status);
bool IsInDoubt(const absl::Status& status);

}  // namespace kvstore
