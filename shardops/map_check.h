#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvstore_api/shard_space.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"

/// Checks a shard map against the hosts before it is put in force: after a typo in a map, clients would use
/// empty shards, and new objects would get IDs that other objects have.
namespace kvstore::shardops {

/// Returns the hosts of the maps, and those that are in no map any more but have a note (notes.h).
std::vector<Host> KnownHosts(FleetOperator& fleet, const Maps& maps);

/// Finds ID shards that `next` opens although their databases already exist on a known host outside their new
/// pair. Returns a sentence for each such host; hosts that do not answer are left out.
std::vector<std::string> FindElsewhere(FleetOperator& fleet, const Maps& now, const ShardMap& next);

/// Which hosts are asked about a map.
enum class AskHosts : uint8_t {
  kNone,     ///< None; only the maps are compared.
  kChanges,  ///< Those of shards that change hands, and those that may have shards which are opened.
  kAll,      ///< All hosts of the map, about all their shards: the map in force cannot be read.
};

/// Returns why `next` should not replace the map in force, a sentence for each problem; empty if all is well.
/// Problems are: hosts that do not answer, or lack databases of shards that they are to have; new masters
/// that are read-only; old masters that still take writes (where nothing is stored in the shards, as all
/// known hosts say, neither what a host lacks nor what it takes is a problem); hosts that the other map has
/// in another pair; shards that are elsewhere (FindElsewhere). After them come the commands that bring about
/// the same without a loss, where there are any.
///
/// now  The maps in force that can be read.
std::vector<std::string> FindMapProblems(FleetOperator& fleet, const Maps& now, ShardSpace space,
                                         const ShardMap& next, AskHosts ask);

}  // namespace kvstore::shardops
