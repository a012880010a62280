#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "shardops/move_record.h"

/// Moves shards, which are databases, from one pair of hosts to another while clients use them.
///
///   copying    A consistent copy is made on the new master; its slave gets it by its own replication.
///   following  A channel brings what changes meanwhile; then all tables are compared, by checksums.
///   switching  Some shards at a time: their tables are renamed on the old master, so that nobody can read
///              or write them there, whatever map he has; the rest of the log is applied; the map names the
///              new pair. Clients wait meanwhile.
///   moved      The channel is gone. The old tables stay as "db00017_moved" until the move is finished.
///
/// If it was stopped at any step, run it again and it goes on, or cancel it: what has moved stays, the rest
/// goes back. To go back after that is to move the other way.
namespace kvstore::shardops {

struct MoveOptions {
  /// Says what would be done.
  bool dry_run = false;
  /// A copy that does not catch up within 10 s is helped: commits at the old master, of all its clients, wait
  /// for up to 400 ms at a time. Else a source that writes faster than the target applies is never caught up
  /// with.
  bool hold_writes = false;
  /// What is being done, how far it is, and how much it is (0: not known). May be null; false stops.
  std::function<bool(std::string_view step, uint64_t done, uint64_t total)> progress;
};

struct Moved {
  uint64_t switches = 0;  ///< How often some shards changed their homes together; 0: there was nothing to do.
  uint64_t max_pause_ms = 0;  ///< The longest time for which clients could not use some of them.
  uint64_t copied_bytes = 0;  ///< Of SQL.
};

/// Moves shards, or goes on with that.
///
/// FAILED_PRECONDITION if they are not all open on one pair, if a pair will not do (WhyNot; pairs need a
/// gtid_domain_id each, and must apply in order), if the new one has such databases already, a dataset there
/// is being migrated, or another move is under way on one of the hosts. DATA_LOSS if the copy is not the
/// same. UNAVAILABLE if a host or ZooKeeper cannot be reached; CANCELLED if progress says so: run it again.
/// If nobody can use some shards meanwhile, the message says so.
absl::StatusOr<Moved> MoveShards(Fleet& fleet, const MoveRange& range, const Pair& to,
                                 const MoveOptions& options);

/// Gives a move up: shards that have not moved are used where they are, and their copies removed.
absl::Status CancelMove(Fleet& fleet, const MoveRange& range);

/// Removes the old copies of shards that have moved. There is no way back to those.
absl::Status FinishMove(Fleet& fleet, const MoveRange& range);

}  // namespace kvstore::shardops
