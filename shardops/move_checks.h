#pragma once

#include "absl/status/status.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/maps.h"

/// What a move needs of its hosts.
namespace kvstore::shardops {

/// Checks what a new move needs of the hosts of both pairs. FAILED_PRECONDITION if a pair has problems
/// (FindPairProblems), if the pairs have different engines, or if a setting would have a copy be wrong; the
/// message says which.
absl::Status CheckMoveHosts(FleetOperator& fleet, const Pair& from, const Pair& to);

/// Checks, on MySQL, that a target which has no channel has no transaction that began on the source and that
/// the source lacks: FAILED_PRECONDITION. There is one if a master died before its slave had what it had sent
/// to an earlier channel, and was made anew. It would give the same GTID to another transaction, which a new
/// channel would skip.
///
/// from  The pair of the source.
absl::Status CheckNothingAhead(HostAdmin& source, HostAdmin& target, const Pair& from);

}  // namespace kvstore::shardops
