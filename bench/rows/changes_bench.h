#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/histogram.h"
#include "bench/harness/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct ChangesOptions {
  LoadOptions load{.threads = 4, .warm_up_s = 0.5, .seconds = 3, .rounds = 5};
  double delay_rate = 2'000;  ///< Appends a second while the delay is measured.
};

struct ChangesResult {
  std::vector<LoadRound> plain;     ///< Appends to a dataset that keeps no changes,
  std::vector<LoadRound> kept;      ///< to one that keeps them,
  std::vector<LoadRound> followed;  ///< and to one that somebody follows meanwhile.
  double kept_ratio = 0;            ///< kept / plain, the median over the rounds
  double followed_ratio = 0;
  Histogram delay;  ///< From an append to when the follower has it, at delay_rate; of whole milliseconds.
};

/// Measures what it costs to keep the changes of a dataset, and how late they are told. Makes datasets of its
/// own, and drops them at the end.
absl::StatusOr<ChangesResult> BenchChanges(KVStore& store, const ChangesOptions& options);

}  // namespace kvstore::bench
