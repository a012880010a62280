#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"
#include "shardops/promote.h"

namespace kvstore::shardops {

/// ID shards that no object is on yet. (Mod shards never change their number.)
struct NewShards {
  uint32_t first = 0;
  uint32_t last = 0;
  /// Where they are to be. The pair may have other shards already, or be new.
  Pair pair;
};

/// Reads the datasets that are on these shards, as the catalog has them at the moment.
using ReadDatasets = std::function<absl::StatusOr<std::vector<DatasetSpec>>()>;

/// What keeps a pair from having shards, in words with what to do; empty: nothing. Slaves that follow badly,
/// masters that do not wait for them, clocks that differ, packets that are too small.
std::vector<std::string> WhyNot(Fleet& fleet, const Pair& pair);

/// Opens shards: makes their databases with all tables on the master, waits until the slave has them, and has
/// the map name them; new objects go there from then on. If it was stopped at any step, run it again.
///
/// progress  shards done, and in all; may be null. To stop it: CANCELLED.
///
/// FAILED_PRECONDITION if a shard of the range is open elsewhere, the pair will not do (WhyNot), somebody
/// has changed the map at the same moment, or another operation has the shards or the pair (ledger.h): a
/// dataset of the space that migrates from its creation to its end. ABORTED if this one was taken away
/// meanwhile.
absl::Status OpenShards(Fleet& fleet, const NewShards& shards, const ReadDatasets& datasets,
                        const Progress& progress);

}  // namespace kvstore::shardops
