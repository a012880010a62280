#pragma once

#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/child.h"
#include "bench/harness/load.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::bench {

struct FloodOptions {
  int flood_threads = 128;  ///< The threads of the caller that floods.
  /// load.threads is what each of the callers has, as long as nobody floods; load.rate is that of all others
  /// together where a process of its own floods, which makes as many calls as it can.
  LoadOptions load{.threads = 4, .warm_up_s = 1, .seconds = 3, .rounds = 5};
};

struct FloodResult {
  /// Rounds in which all callers have the same number of threads, and in which the first one floods, as
  /// ToJson(std::vector<LoadRound>) tells them.
  struct Caller {
    Json equal;
    Json flooded;
  };
  Caller first;
  Caller others;    ///< All others together.
  double kept = 0;  ///< The share of their rate that the others keep: the median over the rounds.
};

/// The caller who floods, as a process of its own that has the cores only when nobody else wants them
/// (SCHED_IDLE): its threads take little from those of the others, as threads of another machine would take
/// nothing.
class FloodingProcess {
 public:
  /// Starts the process, and connects it to a server.
  static absl::StatusOr<FloodingProcess> Start(const std::string& server, const std::string& token);

  /// Runs one round of a load, after warming up, as RunLoad does, and keeps its result for Report.
  absl::Status Run(const LoadOptions& load, bool flooded);
  /// Returns what was measured so far.
  absl::StatusOr<FloodResult::Caller> Report();

 private:
  explicit FloodingProcess(Child child) : child_(std::move(child)) {}

  Child child_;
};

/// The other side of FloodingProcess: carries out what is read, line by line, until the input ends.
void RunFloodingProcess(std::istream& in, std::ostream& out);

/// Measures what the callers of one server keep when one of them floods it: all read small rows without a
/// pause, first as many threads of each, then many threads of the first one.
///
/// callers  Connections of callers whom the server tells apart, at least two. A dataset named kv_bench_flood
///          is created over the first one, which needs the right to do so, and dropped at the end.
/// flood    Calls as the first one; null: this process does.
absl::StatusOr<FloodResult> BenchFlood(const std::vector<std::unique_ptr<KVStore>>& callers,
                                       const FloodOptions& options, FloodingProcess* flood);

}  // namespace kvstore::bench
