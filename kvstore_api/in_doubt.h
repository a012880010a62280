#pragma once

#include "absl/status/status.h"

namespace kvstore {

/// The same error, marked as one of a write that may or may not have happened, or happens later. Where a
/// write fails without the mark, nothing was changed. The status must not be OK.
absl::Status MarkInDoubt(absl::Status status);
/// Whether it has the mark; an OK status has not.
bool IsInDoubt(const absl::Status& status);

}  // namespace kvstore
