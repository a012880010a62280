#pragma once

#include "absl/status/statusor.h"
#include "bench/report.h"

namespace kvstore::bench {

/// What the router adds to a call in process: a get through it beside the same get of the backend's store.
absl::StatusOr<Report> BenchRouting(int rounds, double seconds);

}  // namespace kvstore::bench
