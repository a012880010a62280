#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct TenantsOptions {
  std::vector<std::string> tenants;  ///< Some of "feed", "graph", "import" and "scan"; empty: all.
  uint64_t users = 2000;             ///< Users of the feed.
  uint64_t events = 240'000;         ///< Events of the feed to load.
  uint64_t rows = 100'000;           ///< Rows of ten cells of 100 bytes to load for the scans.
  /// The load of the feed and of the graph, each; import and scan have one thread, which calls without a
  /// pause.
  LoadOptions load{.threads = 4, .warm_up_s = 1, .seconds = 5, .rounds = 3};
};

struct TenantResult {
  std::string name;
  std::vector<LoadRound> alone;
  std::vector<LoadRound>
      together;  ///< Together with all other tenants; the same as `alone` if there are none.
};

/// Measures tenants of one store with different habits, first each alone and then all at once, to show what
/// each loses to the others.
///
///   feed    user sequences: nine reads of the newest 50 events to one append
///   graph   the mix of LinkBench, on objects and mappings
///   import  batches of 100 rows of ten cells of 100 bytes
///   scan    1000 rows from anywhere
/// Datasets named kv_bench_* are created, and dropped at the end. INVALID_ARGUMENT if there is no such
/// tenant.
absl::StatusOr<std::vector<TenantResult>> BenchTenants(KVStore& store, const TenantsOptions& options);

}  // namespace kvstore::bench
