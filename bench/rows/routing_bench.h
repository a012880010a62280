#pragma once

#include "absl/status/statusor.h"
#include "bench/harness/report.h"

namespace kvstore::bench {

/// Measures what the router adds to a call in process: compares a get through it with the same get of the
/// backend's store.
absl::StatusOr<Report> BenchRouting(int rounds, double seconds);

}  // namespace kvstore::bench
