#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/load.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {

struct SequencesOptions {
  uint64_t users = 2000;
  uint64_t events = 480'000;  ///< Events to load, of random users.
  Durability durability = Durability::kProcess;
  uint16_t resp_port = 0;  ///< Where the store's server speaks the Redis protocol, to measure by that; 0: no.
  std::vector<std::string> peers;  ///< Some of "rocksdb", "redis" and "mariadb".
  std::vector<std::string> paths;  ///< Some of those of BenchSequences; empty: all that the stores have.
  LoadOptions load{.threads = 32, .warm_up_s = 1, .seconds = 2, .rounds = 5};
};

/// The results of one of the stores.
struct SequencesSide {
  std::string name;  ///< "kvstore" is the first; peers follow.
  std::string promise;
  std::vector<LoadRound> rounds;
  double ratio = 1;  ///< The first store's calls a second divided by these: the median over the rounds.
};

struct SequencesPath {
  std::string path;
  std::vector<SequencesSide> sides;
};

/// Measures user sequences: events of users, by kind and time, 64 bytes each. The same clients call `store`
/// and its peers in turn:
///
///   newest_50    the newest 50 of a user and a kind
///   fan_out_100  the newest 10 of a kind, of 100 users at once
///   append       an event that has just happened
///
/// and where all stores are called by the Redis protocol:
///
///   get_hash_10  a hash of a user with ten fields of 100 bytes
///   set_hash_10  sets these fields
///
/// fleet  servers for the peer "mariadb".
///
/// INVALID_ARGUMENT if there is no such peer or path; UNAVAILABLE if a peer does not start.
absl::StatusOr<std::vector<SequencesPath>> BenchSequences(KVStore& store, const MySqlFleetOptions* fleet,
                                                          const SequencesOptions& options);

}  // namespace kvstore::bench
