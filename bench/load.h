#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/histogram.h"
#include "kvstore_api/json.h"

/// Clients that call a store as fast as it answers, or at a rate that it does not choose; and what they saw.
namespace kvstore::bench {

struct LoadOptions {
  int threads = 8;
  /// Calls a second of all threads together; 0: each begins the next when the last has ended (closed loop).
  /// With a rate (open loop) a call's latency counts from when it was due, so that a stall is seen by all
  /// calls that it delays.
  double rate = 0;
  double warm_up_s = 2;
  double seconds = 10;  ///< Of each round.
  int rounds = 3;
};

/// What one round gave.
struct LoadRound {
  double ops_s = 0;
  std::map<std::string, Histogram> latencies;  ///< By kind of operation.
};

/// Does one operation of a thread, and says of what kind it was; the text must outlive the run.
using Operation = std::function<const char*(int thread)>;

/// Runs the load.
std::vector<LoadRound> RunLoad(const LoadOptions& options, const Operation& operation);

/// Runs several, whose rounds take turns, so that what disturbs the machine meets all of them; in the same
/// order.
std::vector<std::vector<LoadRound>> RunByTurns(const LoadOptions& options,
                                               std::span<const Operation> operations);

/// How many times as many calls a second as the other one's: the median over the rounds.
double Ratio(std::span<const LoadRound> ours, std::span<const LoadRound> others);

/// Calls a second, as min, median and max of the rounds; and of each kind over all rounds how many there were
/// and their latencies in microseconds: mean, p50, p90, p99, p99_9, max.
Json ToJson(const std::vector<LoadRound>& rounds);

}  // namespace kvstore::bench
