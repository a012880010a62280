#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardops/gtid_set.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// The tag of the GTIDs of such statements, on MySQL.
inline constexpr char kSkippedTag[] = "kvstore_move";

/// Runs statements on a master that a channel (Channel) which copies from it skips, and that its slaves do
/// not skip. Externally synchronised.
///
/// MariaDB marks such statements in the log (skip_replication). MySQL has nothing like it. There each of them
/// gets a GTID that the target of the channel has already, as an empty transaction: a server skips a
/// transaction whose GTID it has. These GTIDs have the source's UUID, a tag, and numbers in ascending order,
/// and name nothing but statements that channels skip. So one which the target has, and with which no
/// statement was run because the process died in between, is as good for the next statement. Only the process
/// that has claimed the source (HostAdmin::Claim) gives such numbers.
class SkippedStatements {
 public:
  /// source  Must be claimed.
  /// target  The host with the channel. Null if there is no channel that could get the statements, or none
  ///         that is used any more: then they are run as all others are. Both must outlive this object.
  SkippedStatements(HostAdmin& source, HostAdmin* target) : source_(source), target_(target) {}

  /// Prepares the target for so many statements, so that it is not needed when they are run, and they take
  /// less time.
  absl::Status Reserve(size_t count);
  /// Runs statements on a connection of the source, one after another. Errors as of HostAdmin, of the source
  /// or of the target. Throws sql::SQLException if the source refuses a statement.
  absl::Status Run(mysql::Connection& source, const std::vector<std::string>& statements);
  /// Does the same with statements about databases such as "db00017_moved", or that create a database unless
  /// it is there. On MySQL the channel's filter leaves out the former, and the latter change nothing where
  /// there are copies, so that they need no GTIDs.
  absl::Status RunOutsideCopies(mysql::Connection& source, const std::vector<std::string>& statements);
  /// Whether the target could not be told to skip something.
  bool target_failed() const { return target_failed_; }

 private:
  /// Reads from the target, once, which GTIDs it has.
  absl::Status Load();
  /// Has the target skip the GTID with this number.
  absl::Status Skip(const std::string& name, uint64_t number);

  HostAdmin& source_;
  HostAdmin* const target_;
  bool loaded_ = false;
  bool target_failed_ = false;
  GtidSet skipped_;  // what the target has
};

}  // namespace kvstore::shardops
