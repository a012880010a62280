#pragma once

#include <string>
#include <vector>

#include "shardops/maps.h"
#include "shardops/promote.h"

/// Whether the hosts are as a shard map says, asked before it is put in force: a typo in a map gives clients
/// empty shards, and objects IDs that others have.
namespace kvstore::shardops {

/// The hosts of the maps, and those that were in them once and of which something is known (notes.h).
std::vector<Host> KnownHosts(Fleet& fleet, const Maps& maps);

/// ID shards that a map opens, and whose databases are at some known host already, other than the pair's: a
/// problem for each host, in words. Hosts that do not answer are left out.
std::vector<std::string> FindElsewhere(Fleet& fleet, const Maps& now, const ShardMap& next);

/// Why a map should not take the place of the one in force: hosts that do not answer, or lack databases of
/// shards that they are to have; masters that are read-only, or leave another that takes writes; hosts that
/// the other map has in another pair; shards that are elsewhere. A problem each, in words; none: all is well.
///
/// look  at the hosts. Else only the maps are compared.
std::vector<std::string> WhyNotInForce(Fleet& fleet, const Maps& now, bool mod, const ShardMap& next,
                                       bool look);

}  // namespace kvstore::shardops
