#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/maps.h"
#include "shardops/move_options.h"
#include "shardops/move_record.h"
#include "shardops/skipped_statements.h"

namespace kvstore::shardops {

/// Drops copies of shards on a host. FAILED_PRECONDITION if the map has one of the shards on that host, so
/// that its database is not a copy.
absl::Status DropCopies(FleetOperator& fleet, HostAdmin& host, const MoveRange& shards);

/// Records that the channel of a move is not to be used any more, so that the move cannot go on, and is to be
/// cancelled: what the source does from now on is not skipped by it.
///
/// This is for MySQL, where a host that does not answer cannot be told what to skip (SkippedStatements), and
/// where shards must be put back into use without it. Should it replicate from the source all the same, it
/// gets what Thaw does. That names only shards that have not moved, of which it has copies that nobody uses
/// and that the cancel drops; and it renames tables to names that the copies have, which the server refuses,
/// so that the channel stops.
absl::Status ForgetChannel(FleetOperator& fleet, MoveRecord& move);

/// Carries out one move (move.h), from the state that its record has to the end. Used once, by one thread.
class Mover {
 public:
  /// begins  Whether the move is new; if not, it is resumed. `fleet` and `options` must outlive the mover.
  Mover(FleetOperator& fleet, MoveRecord move, bool begins, const MoveOptions& options)
      : fleet_(fleet), move_(std::move(move)), begins_(begins), options_(options) {}

  absl::StatusOr<Moved> Run();

 private:
  /// Claims the shards in the ledger, until the move is complete or cancelled.
  absl::Status BeginOperation();
  /// Checks that the source has the shards' databases, the target has none of them, and CheckMigrations.
  absl::Status CheckTables();
  /// Checks that no dataset of the shards is being migrated.
  absl::Status CheckMigrations();
  /// Makes the shards' empty databases at the target, whose log says by that where their copies come from.
  absl::Status MakeDatabases();
  /// Makes the tables on the source that no call has needed yet (MoveOptions::datasets).
  absl::Status MakeMissingTables();
  absl::Status Copy();
  absl::Status Follow();
  absl::Status Verify();
  absl::Status Switch();
  /// Switches the shards of `part` to the new pair, all at once.
  absl::Status SwitchPart(const MoveRange& part);
  /// Puts shards that were taken out of use back into it (Thaw).
  absl::Status PutBack(const MoveRange& part, SkippedStatements& skipped);
  absl::Status Publish(const MoveRange& part);
  /// Checks that the shards' master is still the host on which they were taken out of use, and that the new
  /// pair's roles are as they were.
  absl::Status CheckHomes(const Maps& maps, const MoveRange& part) const;
  /// Ends the channel and the operation after the last switch.
  absl::Status Complete();
  /// Waits until the copy, and the target's slave, are close behind the source, for as long as that can come:
  /// an emergency promotion of either pair ends it, and so does a slave that does not replicate
  /// (CheckReplicates).
  absl::Status CatchUp();
  /// ABORTED if another process has taken the move over; FAILED_PRECONDITION if the hosts do not have the
  /// roles any more that they had when the move began: then the copy would never catch up.
  absl::Status CheckRoles() const;
  /// Waits until the copy, and the target's slave, have what the source has now; DEADLINE_EXCEEDED after
  /// `wait`.
  absl::Status CatchUpWithin(std::chrono::milliseconds wait);
  /// Returns the first shards that have not moved, as many as are switched together; nullopt if all have
  /// moved.
  absl::StatusOr<std::optional<MoveRange>> NextPart();
  /// Saves the move in its next state.
  absl::Status TransitionTo(MoveState state);
  /// Calls the caller's `progress`; CANCELLED if it returns false.
  absl::Status ReportProgress(std::string_view step, uint64_t done, uint64_t total) const;
  /// "shards db 4-7 from A to B"
  std::string Description() const;

  FleetOperator& fleet_;
  MoveRecord move_;
  const bool begins_;
  const MoveOptions& options_;
  Moved moved_;
  Held held_;
  std::unique_ptr<HostAdmin> source_;
  std::unique_ptr<HostAdmin> target_;
  /// A second connection, whose reads end soon: clients wait while it is asked. Made by CatchUp.
  std::unique_ptr<HostAdmin> target_reader_;
  std::unique_ptr<HostAdmin> target_slave_;
};

}  // namespace kvstore::shardops
