#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct YcsbOptions {
  std::string workloads = "ABCDEF";       ///< Run in this order, on the same records.
  uint64_t records = 100'000;             ///< Records of ten columns of 100 bytes.
  std::string dataset = "kv_bench_ycsb";  ///< Created as rows with one version, and dropped at the end.
  LoadOptions load;
};

/// One of the workloads.
struct YcsbResult {
  char workload = 'A';
  std::vector<LoadRound> rounds;
};

/// Runs the core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010)
/// on rows of a store:
///
///   A  half reads, half updates of a field          zipfian
///   B  95 % reads, 5 % updates                      zipfian
///   C  reads only                                   zipfian
///   D  95 % reads, 5 % inserts                      latest
///   E  95 % scans of 1 to 100 rows, 5 % inserts     zipfian; for stores whose rows lie in order
///   F  half reads, half read-modify-writes          zipfian
///
/// A read returns all ten fields. Keys are hashed, as in YCSB.
///
/// INVALID_ARGUMENT if `workloads` has a letter other than A to F; else errors of creating and dropping the
/// dataset. The process ends with a message if a call fails while records are loaded or a workload runs; the
/// dataset is then left.
absl::StatusOr<std::vector<YcsbResult>> BenchYcsb(KVStore& store, const YcsbOptions& options);

}  // namespace kvstore::bench
