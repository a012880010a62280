#pragma once

#include "absl/status/status.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/maps.h"

/// The checks of what a move needs of its hosts.
namespace kvstore::shardops {

/// Checks what a new move needs of the hosts of both pairs. FAILED_PRECONDITION if a pair has problems
/// (FindPairProblems), if the pairs have different engines, or if a setting would have a copy be wrong; the
/// message says which.
absl::Status CheckMoveHosts(FleetOperator& fleet, const Pair& from, const Pair& to);

/// Checks, on MySQL, that the target has no transaction that began on the source and that the source lacks:
/// FAILED_PRECONDITION. There is one if a master died before its slave had what it had sent to a channel, and
/// was made anew. It would give the same GTID to another transaction, which the channel would skip. A
/// transaction that waits for the slave of the source is waited for, for some seconds.
///
/// from    The pair of the source. A transaction that began on its slave, when that was a master, does not
///         matter: no channel from this source gets anything that began there later.
/// copied  Whether the target has a copy already, which may have such a transaction too.
absl::Status CheckNothingAhead(HostAdmin& source, HostAdmin& target, const Pair& from, bool copied);

}  // namespace kvstore::shardops
