#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/move_options.h"
#include "shardops/move_record.h"
#include "shardops/move_repair.h"

/// Moves shards, which are databases, from one pair of hosts to another while clients use them.
///
///   copying    A consistent copy is loaded into the new master, whose slave gets it by its own replication.
///   following  A channel applies what changed since; then all tables are compared, by checksums.
///   switching  A group of shards at a time: their tables are renamed on the old master, so that no client
///              can read or write them there, whichever map it has; the rest of the log is applied; the map
///              then names the new pair. Clients wait meanwhile.
///   moved      The channel is gone. The old tables stay as "db00017_moved" until the move is finished.
///
/// A move that was stopped at any step goes on when it is run again, or can be cancelled: shards that have
/// moved stay at the new pair, the rest is used at the old one. To go back later, move the shards the other
/// way.
namespace kvstore::shardops {

/// Moves shards, or resumes a move of exactly these shards.
///
/// FAILED_PRECONDITION if the shards are not all open on one pair; if a pair has problems (FindPairProblems),
/// its hosts do not share a gtid_domain_id that no other pair has, or do not apply in order; if the new pair
/// has such databases already; if a dataset of these shards is being migrated; if another move uses one of
/// the hosts; or if the record of a move that may use them is damaged (Moves::CheckPair). DATA_LOSS if the
/// copy differs. UNAVAILABLE if a host or ZooKeeper cannot be reached, and CANCELLED if `progress` returned
/// false: run it again. If clients cannot use some shards meanwhile, the message says so.
absl::StatusOr<Moved> MoveShards(FleetOperator& fleet, const MoveRange& range, const Pair& to,
                                 const MoveOptions& options);

/// Cancels a move: puts shards that have not moved back into use at the old pair, and drops their copies.
/// NOT_FOUND if no move of exactly these shards is under way; FAILED_PRECONDITION if a record is damaged that
/// may be the one of these shards.
///
/// named  The pairs of a move whose record cannot be read: it is cancelled as if it could be, by the ledger,
///        the map in force and what the hosts have. FAILED_PRECONDITION as of RebuildMove, and if the record
///        can be read.
/// gone   The pair that the shards go to, whose hosts will never be back: they are asked nothing, and keep
///        what they have. Then the record and the claims of the move end without them. FAILED_PRECONDITION as
///        of CheckTargetGone; and if a map has some of the shards there already: then those that have not
///        moved are put back into use, and the move stays.
absl::Status CancelMove(FleetOperator& fleet, const MoveRange& range,
                        const std::optional<MovePairs>& named = std::nullopt,
                        const std::optional<Pair>& gone = std::nullopt);

/// Drops the old tables of shards that have moved. After that they cannot be recovered. Meanwhile these
/// shards cannot begin to move again. If an old pair has databases of these shards under their own names too,
/// because a slave was promoted there without what its master had done last, these are dropped as well.
/// Nothing is dropped before the masters that the maps have now have said that they have these shards.
///
/// NOT_FOUND if no move of exactly these shards is known; FAILED_PRECONDITION if they have not all moved, if
/// at one of the old pairs no host takes writes, or if a master lacks one of them; UNAVAILABLE if a host does
/// not answer, and the other one of its pair takes no writes, or if such a master does not answer. After an
/// error the record of the move is still there, and the command can be given again.
///
/// gone  A pair that has old tables, and whose hosts will never be back: it is not asked. FAILED_PRECONDITION
///       as of CheckOldHomeGone.
absl::Status FinishMove(FleetOperator& fleet, const MoveRange& range,
                        const std::optional<Pair>& gone = std::nullopt);

}  // namespace kvstore::shardops
