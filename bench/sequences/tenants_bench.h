#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct TenantsOptions {
  std::vector<std::string> tenants;  ///< Of "feed", "graph", "import" and "scan"; empty: all.
  uint64_t users = 2000;             ///< Of the feed.
  uint64_t events = 240'000;         ///< Of the feed, to load.
  uint64_t rows = 100'000;           ///< Of ten cells of 100 bytes, to load for the scans.
  /// Of the feed and of the graph, each; import and scan have one thread, as fast as it goes.
  LoadOptions load{.threads = 4, .warm_up_s = 1, .seconds = 5, .rounds = 3};
};

struct TenantResult {
  std::string name;
  std::vector<LoadRound> alone;
  std::vector<LoadRound> together;  ///< Beside all others; as alone if there are none.
};

/// Users of one store with different habits, first each alone, and then all at once: what each of them loses
/// by the others.
///
///   feed    user sequences: nine reads of the newest 50 events to one append
///   graph   the mix of LinkBench, on objects and mappings
///   import  batches of 100 rows of ten cells of 100 bytes
///   scan    1000 rows from anywhere
///
/// Datasets named kv_bench_* are made for it, and dropped. INVALID_ARGUMENT if there is no such tenant.
absl::StatusOr<std::vector<TenantResult>> BenchTenants(KVStore& store, const TenantsOptions& options);

}  // namespace kvstore::bench
