#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"

namespace kvstore::shardops {

/// A host of the maps, what it reports, and what is wrong with it.
struct HostReport {
  Host host;
  bool master = false;  ///< Whether the maps have it as a master.
  Pair pair;
  std::string shards;              ///< "db 0-511, mod 0-7"
  absl::Status status;             ///< Why `state` is missing.
  std::optional<HostState> state;  ///< None if the host did not answer.
  absl::Status copy;               ///< CheckCopyEnded of this host: if an error, it must not become a master.
  absl::Status slave_copy;         ///< CheckCopyEnded of the pair's slave.
  uint64_t bytes = 0;              ///< HostAdmin::ReadSize; not read by InspectHost.
  SlowStatements slow;             ///< HostAdmin::ReadSlow; not read by InspectHost.
  std::vector<std::string> problems;  ///< A sentence for each problem, with what to do; empty if all is well.
};

/// Returns a sentence about transactions that began on a slave and that its master lacks: if it took the
/// master's place, they would come into force. Empty if there are none, or the slave follows nobody. MySQL
/// only; it does not matter which of the two was read first.
std::string StrayTransactions(const HostState& slave, const HostState& master);

/// Returns a sentence about transactions that began on a slave and that it has lost by a crash, while its
/// master has them. A MySQL server takes none of its own from a master, so it could never have all. Empty if
/// there are none. MySQL only; it does not matter which of the two was read first.
std::string LostTransactions(const HostState& slave, const HostState& master);

/// Asks one host of a pair.
HostReport InspectHost(FleetOperator& fleet, const Pair& pair, bool master);

/// Asks all hosts of the maps, in parallel. Returns hosts with problems first, and otherwise in the order of
/// the maps. Records the masters' states for emergency promotions (remember.h). UNAVAILABLE only if the maps
/// cannot be read.
absl::StatusOr<std::vector<HostReport>> InspectFleet(FleetOperator& fleet);

/// Does the same by the copies of the maps in a data directory (MapCopy), while ZooKeeper cannot be reached.
/// Records nothing, and proposes no promotion. NOT_FOUND if there is no copy.
absl::StatusOr<std::vector<HostReport>> InspectFleetByCopies(const Access& access,
                                                             const std::filesystem::path& folder);

}  // namespace kvstore::shardops
