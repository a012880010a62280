#pragma once

#include "absl/status/statusor.h"
#include "bench/harness/report.h"
#include "bench/migration/migrate_options.h"

namespace kvstore::bench {

/// Migrates a dataset from an embedded store to MySQL servers and back. Measures how fast it is copied and
/// compared, beside the engines alone, and what clients notice; checks that the history of the clients is
/// linearizable (history.h), and returns an error if it is not.
absl::StatusOr<Report> BenchMigrate(const MigrateBenchOptions& options);

}  // namespace kvstore::bench
