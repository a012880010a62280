#pragma once

#include <string>
#include <vector>

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

/// Returns why `next` should not replace the map in force, a sentence for each problem; empty if all is well.
/// Problems are: hosts that do not answer, or lack databases of shards that they are to have; new masters
/// that are read-only; old masters that still take writes; hosts that the other map has in another pair;
/// shards that are elsewhere (FindElsewhere).
///
/// ask_hosts  Whether the hosts are asked; if not, only the maps are compared.
std::vector<std::string> FindMapProblems(FleetOperator& fleet, const Maps& now, bool mod,
                                         const ShardMap& next, bool ask_hosts);

}  // namespace kvstore::shardops
