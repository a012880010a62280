#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/promote_options.h"

namespace kvstore::shardops {

/// Makes a slave the master of its shards. After each step at most one host of the pair takes writes, and the
/// hosts' own settings enforce that; the map follows. A promotion that was stopped at any step goes on when
/// it is run again: it finds out from the hosts and the map how far it got. Run for the old master instead,
/// before the map has changed, it goes back.
///
/// Planned    The master becomes read-only, its clients' connections are ended, the slave applies the rest,
/// the
///            map names the slave, and it takes writes. The old master follows it. Clients wait meanwhile.
/// Emergency  The same without a master. The slave must have all that was acknowledged. That is known if the
///            master, when it was last inspected (RecordMasterState), acknowledged no commit without its
///            slave, that slave was this one and the only one, and this one has been receiving by the same
///            thread since and still has what it had then: no client was told of what the master's log has
///            beyond that. Otherwise FAILED_PRECONDITION says what is missing or not known, unless
///            accept_loss covers it.
///
/// FAILED_PRECONDITION also if another operator is at work on one of the hosts, or `host` is in no map,
/// follows another master, has a copy that was never completed (ReplaceSlave), or lacks what a master needs;
/// UNAVAILABLE if a host or ZooKeeper cannot be reached. After an error nothing has changed, or what was
/// changed is undone; unless the message says that no host takes writes, and how to go on.
///
/// In the ledger a promotion claims both hosts. An emergency is not refused by claims of others: it takes
/// them away, so that those operations cannot publish a map any more. Only a move of shards goes on, and
/// finds out by itself.
absl::StatusOr<Promotion> Promote(FleetOperator& fleet, const Host& host, const PromoteOptions& options);

/// Makes a host read-only and ends the connections of its clients. Returns how many there were. Commits that
/// wait for a slave are cut short: they stay on that host, and their clients are told that the outcome is
/// unknown. UNAVAILABLE if a statement keeps the host from becoming read-only all the same. The host's note
/// says who has fenced it, until it takes writes again (RecordFenced). Whoever is at work on the host, also a
/// move, loses its claim, and can open nothing after the fence. If somebody opens the host at the same time
/// it is fenced again; ABORTED if that happens again and again.
absl::StatusOr<uint64_t> Fence(FleetOperator& fleet, const Host& host);

/// As Fence with the slave of a pair, but only as long as the maps have it as the slave of that master, and
/// only if nobody else is at work on it: FAILED_PRECONDITION; ABORTED if the operation was taken over.
absl::StatusOr<uint64_t> FenceSlave(FleetOperator& fleet, const Pair& pair);

}  // namespace kvstore::shardops
