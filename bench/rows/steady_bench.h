#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/histogram.h"

/// Measures an embedded store under load for hours: latencies, memory and files by the minute.
namespace kvstore::bench {

struct SteadyOptions {
  std::string dir;  ///< Where the store's folder is made; empty: the system's place for temporary files.
  std::string workloads = "ABD";  ///< Workloads of YCSB (ycsb.h), in this order, on the same records.
  double minutes = 60;            ///< Time of all workloads together; each gets the same part.
  uint64_t records = 2'000'000;   ///< Records of ten fields of 100 bytes.
  uint64_t cache_bytes = uint64_t{256} << 20;
  int threads = 4;
  double share = 0.7;  ///< Share of the highest rate, at which each thread makes one call after the other.
  /// How long the highest rate is measured, after warming up for half of that. It sinks for minutes, until
  /// compactions have as much to do as updates leave behind; a short burst is more than a store can keep up.
  double top_s = 300;
  uint64_t compact_ms = 300'000;  ///< Time between two compactions by an operator.
  uint64_t ttl_ms = 300'000;      ///< Time to live of sessions.
};

/// Latencies in microseconds, counted from when calls were due.
struct SteadyLatencies {
  double p50 = 0;
  double p99 = 0;
  double p99_9 = 0;
  double max = 0;
};

struct SteadyMinute {
  double calls_s = 0;
  SteadyLatencies us;
  uint64_t missed = 0;      ///< Calls that were due and never made: LoadSlice::missed.
  double pause_ms = 0;      ///< The longest time in which no call was answered.
  double overslept_ms = 0;  ///< By how many ms a thread that only sleeps was late at most.
  uint64_t resident_bytes = 0;
  uint64_t wal_bytes = 0;
  uint64_t files = 0;  ///< Files in the store's folder.
  uint64_t disk_bytes = 0;
  uint64_t stalled_ms = 0;  ///< How long RocksDB made writes wait, all threads together.
};

/// A compaction of all datasets, as by `kv compact`; times are since its workload began.
struct SteadyCompaction {
  double begin_s = 0;
  double end_s = 0;
  uint64_t removed_cells = 0;  ///< Expired and surplus ones.
};

struct SteadyWorkload {
  char workload = 'A';
  double top_s = 0;  ///< The highest rate, in calls a second.
  double rate = 0;   ///< The rate at which the minutes below ran, in calls a second.
  std::vector<SteadyMinute> minutes;
  std::map<std::string, uint64_t> counts;  ///< By kind of call, as the next field.
  std::map<std::string, SteadyLatencies> kinds;
  std::vector<SteadyCompaction> compactions;
};

struct SteadyReport {
  SteadyOptions options;
  unsigned cores = 0;
  std::string cpu;
  double load_s = 0;  ///< Seconds that writing the records took.
  std::vector<SteadyWorkload> workloads;
};

/// Runs each workload first as fast as possible, then at a share of that rate, at random moments that do not
/// depend on the store (open loop). Besides YCSB's calls, of a hundred calls
///
///   two    delete a record, or put back what was deleted; with D five, which delete the oldest ones, so that
///          the records do not grow
///   five   put a session, a row of one cell of 200 bytes that expires, or read one
///
/// and every now and then all datasets are compacted. A call that fails ends the benchmark.
/// tell  called now and then with the report so far and a description of the current step, for people who
/// wait. Returns INVALID_ARGUMENT if there is no such workload.
absl::StatusOr<SteadyReport> BenchSteady(
    const SteadyOptions& options,
    const std::function<void(const SteadyReport& report, const std::string& what)>& tell);

}  // namespace kvstore::bench
