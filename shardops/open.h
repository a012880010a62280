#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"

namespace kvstore::shardops {

/// ID shards first..last, which are not open yet. (The number of mod shards never changes.)
struct NewShards {
  uint32_t first = 0;
  uint32_t last = 0;
  /// The pair that is to have them. It may be new, or have other shards already.
  Pair pair;
};

/// The result of OpenShards.
struct Opened {
  bool already = false;  ///< The shards were open on this pair before, so that the map was not changed.
};

/// Reads from the catalog the datasets that are on ID shards.
using ReadDatasets = std::function<absl::StatusOr<std::vector<DatasetSpec>>()>;

/// Returns why a pair should not get shards, a sentence for each problem, with what to do; empty if it may.
/// Problems are those of HostReport: broken or lagging replication, a master that does not wait for its
/// slave, clocks that differ, a max_allowed_packet that is too small.
std::vector<std::string> FindPairProblems(FleetOperator& fleet, const Pair& pair);

/// Opens shards: creates their databases with all tables on the master, waits until the slave has them, and
/// adds them to the map, so that new objects go there. If it was stopped at any step, run it again.
///
/// progress  Is called with the numbers of shards that were created, and of all; may be null. If it returns
/// false
///           this ends with CANCELLED.
///
/// FAILED_PRECONDITION if a shard of the range is open already, the pair has problems (FindPairProblems),
/// another host has one of the databases, somebody changes the map at the same moment, or another operation
/// claims the shards or the pair (ledger.h), as a dataset does that migrates to or from ID shards, from the
/// creation of the migration to its end. ABORTED if this operation was taken away meanwhile. OK, after
/// creating what is missing, if exactly these shards are open on this pair.
absl::StatusOr<Opened> OpenShards(FleetOperator& fleet, const NewShards& shards, const ReadDatasets& datasets,
                                  const Progress& progress);

}  // namespace kvstore::shardops
