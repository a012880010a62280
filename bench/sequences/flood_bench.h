#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct FloodOptions {
  int flood_threads = 128;  ///< Of the caller who floods.
  /// load.threads is what each of the callers has, as long as nobody floods.
  LoadOptions load{.threads = 4, .warm_up_s = 1, .seconds = 3, .rounds = 5};
};

struct FloodResult {
  /// Rounds in which all callers have the same number of threads, and in which the first one floods.
  struct Caller {
    std::vector<LoadRound> equal;
    std::vector<LoadRound> flooded;
  };
  Caller first;
  Caller others;    ///< All others together.
  double kept = 0;  ///< What the others keep of their rate: the median over the rounds.
};

/// Measures what the callers of one server keep when one of them floods it: all read small rows without a
/// pause, first as many threads of each, then many threads of the first one.
///
/// callers  Connections of callers whom the server tells apart, at least two. A dataset named kv_bench_flood
/// is
///          created over the first one, which needs the right to do so, and dropped at the end.
absl::StatusOr<FloodResult> BenchFlood(const std::vector<std::unique_ptr<KVStore>>& callers,
                                       const FloodOptions& options);

}  // namespace kvstore::bench
