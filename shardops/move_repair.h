#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"
#include "shardops/move_record.h"

/// Repairs a move whose record in ZooKeeper cannot be read.
namespace kvstore::shardops {

/// The two pairs of a move.
struct MovePairs {
  Pair from;
  Pair to;
};

/// Returns the record of a move that is under way, made anew of its operation in the ledger, whose claims
/// name the hosts. It has what CancelMove needs: neither how far the copy is nor where old tables are.
///
/// damaged  The record that cannot be read; one of `moves`.
/// named    The pairs as the operator knows them. They must be those of the ledger, so that nothing is
/// removed
///          on hosts that have nothing to do with the move.
///
/// FAILED_PRECONDITION if the ledger has no such operation, or it names other hosts; or if another move is
/// under way on one of these hosts, or a second record that cannot be read may be about these shards.
absl::StatusOr<MoveRecord> RebuildMove(FleetOperator& fleet, const Moves& moves, const DamagedMove& damaged,
                                       const MovePairs& named);

/// Asks the pairs of the maps, and the pair that the move goes to, for tables that earlier moves of its
/// shards have left there. Returns the pairs that have some. Reports hosts that do not answer.
std::vector<Pair> FindOldHomes(FleetOperator& fleet, const Maps& maps, const MoveRecord& move);

}  // namespace kvstore::shardops
