#pragma once

#include "absl/status/status.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"
#include "shardops/move_record.h"

/// Ends moves whose new hosts are gone for good.
namespace kvstore::shardops {

/// Returns the error of a cancel that needs a host of the pair that the move goes to, which does not answer:
/// the host's error, and the command for the case that the pair is gone for good.
absl::Status TargetSilentError(const MoveRecord& move, const absl::Status& why);

/// Checks that the move can do without the pair that it goes to. Changes nothing.
///
/// gone  The pair, as the operator names it.
///
/// FAILED_PRECONDITION if the move goes to other hosts, or if a host answers that can be asked, or be made
/// the master of its pair and then be asked. A slave that answers while no map has its pair is not asked: it
/// only has copies, and the operator is told so.
absl::Status CheckTargetGone(FleetOperator& fleet, const Maps& maps, const MoveRecord& move,
                             const Pair& gone);

/// Returns the refusal to end a move some of whose shards have moved to the pair that is gone.
///
/// moved  These shards.
/// home   The host that has their old tables.
absl::Status MovedToGoneError(const MoveRecord& move, const MoveRange& moved, const Host& home);

/// Removes from the move what only the pair that is gone could be asked for, and records, in the notes about
/// these hosts, of which shards they have copies, so that CheckFleet names these should a host come back.
///
/// held  The move's operation. ABORTED if it is not held any more.
absl::Status LeaveTarget(FleetOperator& fleet, const Held& held, MoveRecord& move);

/// Checks that the finish of a move can do without a pair that has old tables. Changes nothing.
///
/// gone  The pair, as the operator names it.
///
/// FAILED_PRECONDITION if the record of the move names no old tables on such a pair, or if a host of it
/// answers.
absl::Status CheckOldHomeGone(FleetOperator& fleet, const MoveRecord& move, const Pair& gone);

/// Whether two pairs have the same hosts, in whichever roles.
bool SameHosts(const Pair& a, const Pair& b);

}  // namespace kvstore::shardops
