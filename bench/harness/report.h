#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/json.h"

/// How a measurement is made and told. docs/performance.md says how to read it.
namespace kvstore::bench {

struct PathResult {
  std::string path;
  double ours_ops_s = 0;
  double raw_ops_s = 0;  ///< 0: not compared.
  double ratio = 0;      ///< ours / raw, the median over the rounds.
  double p50_us = 0;     ///< Of ours.
  double p99_us = 0;
  uint64_t units = 0;  ///< That were done, where instructions are counted and not time.
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
  /// Other figures: their names say the unit.
  std::vector<std::pair<std::string, double>> figures;
  /// Growth of resident memory during a full paged read; 0: not measured.
  uint64_t paged_read_rss_bytes = 0;
};

Json ToJson(const Report& report);

/// Does one operation number `i` and returns how many units it did (1, or the cells of a scan).
using Work = std::function<uint64_t(uint64_t i)>;

struct Rounds {
  int rounds = 9;
  double seconds = 0.4;  ///< Of each side in a round.
  /// So many at once. Thread t does the operations t, t + threads, t + 2 * threads, ..., so that `i %
  /// threads` tells whose one is.
  uint64_t threads = 1;
};

/// Runs ours and raw by turns, in each round first the one, then the other, so that what disturbs the machine
/// meets both. `raw` may be null. Units a second; the ratio is the median of the rounds' ratios.
PathResult Compare(const std::string& path, const Rounds& rounds, const Work& ours, const Work& raw);

/// Runs small and large by turns; cost a unit.
GrowthResult CompareGrowth(const std::string& path, const Rounds& rounds, const Work& small,
                           const Work& large);

/// Whether a path is asked for: it is one of `paths`, or that is empty.
bool Wanted(const std::vector<std::string>& paths, const std::string& path);
/// INVALID_ARGUMENT if there is no result of one of `paths`.
absl::Status CheckPaths(const std::vector<std::string>& paths, const Report& report);

/// Resident memory of a process in bytes.
///
/// process  its number in /proc, or "self".
uint64_t ResidentBytes(const std::string& process = "self");

/// Fills in what machine this is.
void DescribeMachine(Report& report);

/// Ends the benchmark when a call fails: its figures would mean nothing.
void Check(const absl::Status& status);

}  // namespace kvstore::bench
