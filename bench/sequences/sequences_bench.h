#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load.h"
#include "bench/sequence_store.h"

namespace kvstore::bench {

struct SequencesOptions {
  uint64_t users = 2000;
  uint64_t events = 480'000;  ///< To load, of random users.
  Durability durability = Durability::kProcess;
  std::vector<std::string> peers;  ///< Of "rocksdb", "redis" and "mariadb".
  std::vector<std::string> paths;  ///< Of "append", "newest_50" and "fan_out_100"; empty: all.
  LoadOptions load{.threads = 32, .warm_up_s = 1, .seconds = 2, .rounds = 5};
};

/// What one of the stores did.
struct SequencesSide {
  std::string name;  ///< "kvstore" is the first; peers follow.
  std::string promise;
  std::vector<LoadRound> rounds;
  double ratio = 1;  ///< Of the first one's calls a second to these: the median over the rounds.
};

struct SequencesPath {
  std::string path;
  std::vector<SequencesSide> sides;
};

/// User sequences: what users did, by kind and time, 64 bytes an event. The same clients, by turns, on
/// `store` and on its peers:
///
///   newest_50    the newest 50 of a user and a kind
///   fan_out_100  the newest 10 of a kind, of 100 users at once
///   append       an event that has just happened
///
/// fleet  For "mariadb".
///
/// INVALID_ARGUMENT if there is no such peer or path; UNAVAILABLE if a peer does not start.
absl::StatusOr<std::vector<SequencesPath>> BenchSequences(KVStore& store, const MySqlFleet* fleet,
                                                          const SequencesOptions& options);

}  // namespace kvstore::bench
