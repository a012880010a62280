#pragma once

#include <vector>

#include "absl/status/status.h"

namespace kvstore::bench {

/// Returns the numbers of the cores on which this thread may run.
std::vector<int> AllowedCores();

/// Has this thread, and the threads and processes that it starts from now on, run on these cores alone.
absl::Status RunOn(const std::vector<int>& cores);

}  // namespace kvstore::bench
