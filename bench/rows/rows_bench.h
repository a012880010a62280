#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/bench_store.h"
#include "bench/harness/report.h"

namespace kvstore::bench {

struct RowsOptions {
  uint64_t cells = 2'000'000;  ///< Cells of 100 bytes, ten a row.
  int rounds = 9;
  double seconds = 0.4;  ///< How long each side of a path runs in a round.
  bool compare = true;   ///< Also measure RocksDB alone.
  bool growth = false;   ///< Also measure how costs grow with versions, columns and datasets.
  /// If not 0: instead of measuring time, execute this many operations of each path within CountedCalls,
  /// where a profiler counts instructions; the report says how many units that were.
  uint64_t counted = 0;
  std::vector<std::string> paths;  ///< Only these; empty: all.
  std::string dir;                 ///< Where the store is made; empty: a temporary place.
};

/// Runs the row workload: the same cells through the public API and through RocksDB's API, in one process, in
/// turn, with the same key bytes, options and batch sizes. The raw side copies each value out, as any caller
/// must.
absl::StatusOr<Report> BenchRows(const RowsOptions& options);

/// Adds the measurements of growth to `report`.
absl::Status BenchGrowth(const RowsOptions& options, Report& report);

/// Returns value number `i`, of 100 bytes, which does not compress to nothing.
std::string MakeValue(uint64_t i);

}  // namespace kvstore::bench
