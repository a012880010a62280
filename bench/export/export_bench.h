#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/harness/report.h"
#include "export/export.h"

namespace kvstore::bench {

struct ExportBenchOptions {
  std::string dir;              ///< Where the store is made; empty: the system's place for temporary files.
  uint64_t rows = 300'000;      ///< With one cell each.
  uint64_t value_bytes = 1024;  ///< The size of each cell: random letters, which compress to three quarters.
  int rounds = 3;               ///< Each figure is the median of so many rounds.
  size_t lanes = exports::kUsualLanes;
};

/// Measures exports of an embedded dataset as Parquet into a folder, beside a raw scan: one cursor that reads
/// the same cells, on one thread. Rates are in bytes of keys and values a second.
///
///   long  a row of the table for each cell
///   wide  the column with its newest values
///
/// Figures: how much larger this process became during an export, and the largest kv-parquet, in MiB; bytes
/// of Parquet for a byte of keys and values. FAILED_PRECONDITION without kv-parquet.
absl::StatusOr<Report> BenchExport(const ExportBenchOptions& options);

}  // namespace kvstore::bench
