#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "shardops/findings.h"
#include "shardops/fleet_operator.h"

/// Compares what the hosts have with what they should have by the maps and the catalog.
namespace kvstore::shardops {

/// Compares each host with the maps and the catalog. Returns the problems of InspectFleet, and each database
/// or table that is missing, and each database of a shard that the maps have on another host.
///
/// datasets  The datasets that are on the shards of this fleet.
absl::StatusOr<FleetCheck> CheckFleet(FleetOperator& fleet, std::span<const DatasetSpec> datasets);

/// Compares only the databases of the hosts with the maps, at the cost of one quick question to each host.
/// Leaves out the shards and hosts that an operation under way has for itself alone, since it is about to
/// change what they have.
absl::StatusOr<FleetCheck> CheckDatabases(FleetOperator& fleet);

}  // namespace kvstore::shardops
