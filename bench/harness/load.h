#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/histogram.h"
#include "json/json.h"

/// Clients that call a store as fast as it answers (closed loop), or at a given rate (open loop), and measure
/// latencies.
namespace kvstore::bench {

struct LoadOptions {
  int threads = 8;
  /// Calls a second of all threads together; 0: each begins the next when the last has ended (closed loop).
  /// With a rate (open loop) a call's latency counts from when it was due, so that a stall is seen by all
  /// calls that it delays.
  double rate = 0;
  double warm_up_s = 2;
  double seconds = 10;  ///< Length of each round.
  int rounds = 3;
};

/// The results of one round.
struct LoadRound {
  double ops_s = 0;
  std::map<std::string, Histogram> latencies;  ///< By kind of operation.
};

/// Executes one operation of a thread and returns the name of its kind, which must outlive the run.
using Operation = std::function<const char*(int thread)>;

/// Runs the load.
std::vector<LoadRound> RunLoad(const LoadOptions& options, const Operation& operation);

/// Runs several loads, whose rounds take turns, so that disturbances of the machine affect all of them.
/// Returns their results in the order of `operations`.
std::vector<std::vector<LoadRound>> RunByTurns(const LoadOptions& options,
                                               std::span<const Operation> operations);

/// A part of a long run, for example a minute.
struct LoadSlice {
  LoadRound load;  ///< The results of the calls that were due in this slice.
  /// The longest time in ms in which no call was answered; it belongs to the slice in which it ended.
  /// Meaningful only where calls come much more often.
  double pause_ms = 0;
  /// Calls that were due in this slice and were never made, because the load was still behind half a minute
  /// after its end.
  uint64_t missed = 0;
};

/// Runs a load with a rate once, without warming up, in slices. A call belongs to the slice in which it was
/// due, even if it is answered in the next one, so that no pause is lost between two slices. slice_s   length
/// of a slice; the last one may be shorter. at_end    called with the number of a slice when its time has
/// passed; the load continues meanwhile.
std::vector<LoadSlice> RunSlices(const LoadOptions& options, double slice_s, const Operation& operation,
                                 const std::function<void(size_t slice)>& at_end);

/// Returns the ratio of the rates of calls, ours / others: the median over the rounds.
double Ratio(std::span<const LoadRound> ours, std::span<const LoadRound> others);

/// Returns the calls a second, as min, median and max of the rounds; and, for each kind of operation over all
/// rounds, the count and the latencies in microseconds: mean, p50, p90, p99, p99_9, max.
Json ToJson(const std::vector<LoadRound>& rounds);

}  // namespace kvstore::bench
