#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "bench/mysql_fixture.h"
#include "bench/report.h"

namespace kvstore::bench {

struct MigrateBenchOptions {
  MySqlFleet fleet;
  uint64_t cells = 200'000;  ///< Of 100 bytes, ten a row.
  double seconds = 3;  ///< Of load before the migration begins, and of each measurement of captured writes.
  bool raw = true;     ///< Also by RocksDB and the connector alone; else only what clients see.
  std::filesystem::path svg;  ///< Where a picture is written of what clients saw; empty: nowhere.
  bool tell = false;          ///< Say on standard output what happens.
};

/// A dataset moves from an embedded store to MySQL servers and back: how fast it is copied and compared
/// beside the engines alone, what clients notice of it, and whether all that they were told is true
/// (history.h): an error if it is not.
absl::StatusOr<Report> BenchMigrate(const MigrateBenchOptions& options);

}  // namespace kvstore::bench
