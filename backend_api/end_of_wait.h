#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace kvstore {

/// Returns the error of a call that ends because its time is up or its caller has cancelled it (CheckCall),
/// with the reason why it had not ended before: "the call's deadline has passed; it waited: the host is
/// read-only". Keeps the code. Without this, all that a caller would learn is that the time was too short.
///
/// over        must not be OK.
/// waited_for  what the call waited for when its time was up; empty: nothing is added.
absl::Status EndOfWait(const absl::Status& over, std::string_view waited_for);

}  // namespace kvstore
