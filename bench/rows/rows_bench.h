#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/bench_store.h"
#include "bench/report.h"

namespace kvstore::bench {

struct RowsOptions {
  uint64_t cells = 2'000'000;  ///< Of 100 bytes, ten a row.
  int rounds = 9;
  double seconds = 0.4;  ///< Of each side of a path in a round.
  bool compare = true;   ///< Also straight through RocksDB.
  bool growth = false;   ///< Also how costs grow with versions, columns and datasets.
  /// Instead of measuring time, does so many operations of each path within CountedCalls, where a profiler
  /// counts instructions; the report's figures say how many units that were. 0: measures time.
  uint64_t counted = 0;
  std::vector<std::string> paths;  ///< Only these; empty: all.
  std::string dir;                 ///< Where the store is made; empty: a temporary place.
};

/// The row workload: the same cells through the public API and straight through RocksDB's API, in one
/// process, by turns, with the same key bytes, options and batch sizes. The raw side copies each value out,
/// as any caller must.
absl::StatusOr<Report> BenchRows(const RowsOptions& options);

/// Adds the measurements of growth to `report`.
absl::Status BenchGrowth(const RowsOptions& options, Report& report);

/// A value of 100 bytes that does not compress to nothing; `i` chooses it.
std::string MakeValue(uint64_t i);

}  // namespace kvstore::bench
