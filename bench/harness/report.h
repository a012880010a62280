#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "json/json.h"

/// How measurements are made and reported. docs/performance.md says how to read the reports.
namespace kvstore::bench {

struct PathResult {
  std::string path;
  double ours_ops_s = 0;
  double raw_ops_s = 0;  ///< 0 if there was no comparison.
  double ratio = 0;      ///< ours / raw, the median over the rounds.
  double p50_us = 0;     ///< Latency of our side.
  double p99_us = 0;
  uint64_t units = 0;  ///< Units that were done, where instructions are counted instead of time.
};

/// How the cost of an operation grows with the data.
struct GrowthResult {
  std::string path;
  double small_us = 0;
  double large_us = 0;
  double factor = 0;  ///< large / small, the median over the rounds.
};

struct Report {
  std::string workload;
  std::string backend;
  std::vector<std::pair<std::string, uint64_t>> settings;
  unsigned cores = 0;
  std::string cpu;
  std::vector<PathResult> results;
  std::vector<GrowthResult> growth;
  /// Other figures; their names include the unit.
  std::vector<std::pair<std::string, double>> figures;
  /// Growth of resident memory during a full paged read; 0: not measured.
  uint64_t paged_read_rss_bytes = 0;
};

Json ToJson(const Report& report);

/// Executes operation number `i` and returns how many units that was (1, or the cells of a scan).
using Work = std::function<uint64_t(uint64_t i)>;

struct Rounds {
  int rounds = 9;
  double seconds = 0.4;  ///< How long each side runs in a round.
  /// How many threads run at once. Thread t executes the operations t, t + threads, t + 2 * threads, ..., so
  /// that `i % threads` is the thread of operation i.
  uint64_t threads = 1;
};

/// Runs ours and raw in each round, one after the other, so that disturbances of the machine affect both.
/// `raw` may be null. Returns units a second; the ratio is the median of the rounds' ratios.
PathResult Compare(const std::string& path, const Rounds& rounds, const Work& ours, const Work& raw);

/// Runs small and large in turn; returns the cost of a unit of each.
GrowthResult CompareGrowth(const std::string& path, const Rounds& rounds, const Work& small,
                           const Work& large);

/// Returns whether a path is wanted: it is one of `paths`, or `paths` is empty.
bool Wanted(const std::vector<std::string>& paths, const std::string& path);
/// Returns INVALID_ARGUMENT if one of `paths` has no result.
absl::Status CheckPaths(const std::vector<std::string>& paths, const Report& report);

/// Returns the resident memory of a process in bytes.
/// process  number of the process in /proc, or "self".
uint64_t ResidentBytes(const std::string& process = "self");

/// Fills in the cores and the CPU of this machine.
void DescribeMachine(Report& report);

/// Ends the benchmark when a call fails: its figures would mean nothing.
void Check(const absl::Status& status);

}  // namespace kvstore::bench
