#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace kvstore::backup {

// How many objects are worked on at a time, so that many small ones do not wait for each other.
inline constexpr size_t kSent = 2;  ///< A bucket takes memory of up to 128 MiB for each (PutStream).
inline constexpr size_t kFetched = 4;
inline constexpr size_t kDeleted = 8;

/// Calls `work(i)` for each i < count, by up to `threads` threads, under the limits of the caller's call.
/// Returns the first error, after which no further work is begun, when all that was begun has ended.
absl::Status InParallel(size_t count, size_t threads, const std::function<absl::Status(size_t)>& work);

}  // namespace kvstore::backup
