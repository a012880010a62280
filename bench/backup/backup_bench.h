#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/harness/report.h"

namespace kvstore::bench {

struct BackupBenchOptions {
  std::string dir;          ///< Where the stores are made; empty: the system's place for temporary files.
  uint64_t rows = 300'000;  ///< How many there are, each of 1 KiB that does not compress.
  double seconds = 10;      ///< How long reads are measured, alone and beside a backup.
  /// A bucket, "s3://BUCKET/PREFIX", with nothing below the prefix, which is left with a backup; how to reach
  /// it is in the environment. Empty: none.
  std::string bucket;
};

/// Measures backups of an embedded store into a folder, and of a dataset in units. Rates are in bytes a
/// second:
///
///   create           the first backup, beside a copy of the same files, each of them synced
///   restore          of that backup, beside the same copy
///   dataset_create   of the same rows in units, beside a scan of them
///   dataset_restore  of that backup, beside puts of the same rows in batches
///   bucket_restore   of a backup of the store in the bucket, beside curl that fetches the same objects
///
/// Figures: which share of the bytes a second backup sends after 1 % of the rows were written, and a third
/// after a compaction of them; and p99 of reads beside a backup whose rate is limited, as a factor of p99
/// without one.
absl::StatusOr<Report> BenchBackup(const BackupBenchOptions& options);

}  // namespace kvstore::bench
