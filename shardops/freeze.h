#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "shardops/move_record.h"

/// The tables of shards are put where no client looks for them, and back. The server itself then refuses
/// whoever reads or writes them, and our clients know what that means (Fleet::Run).
///
/// Slaves of the host do the same; a channel that copies the shards (Channel) leaves it out.
namespace kvstore::shardops {

/// Makes the databases that take the tables.
absl::Status MakePlace(HostAdmin& host, const MoveRange& shards);

/// Renames all tables, at once: "db00017"."pins" is "db00017_moved"."pins"; and removes the databases that
/// they were in, so that nobody makes a table there. Those that are renamed already stay. Waits for
/// transactions that use them, and new ones wait behind: UNAVAILABLE if one takes longer than a second, and
/// nothing has changed then.
///
/// Tables that somebody made meanwhile under the old names (he had made the database too) are removed, here
/// and by Thaw, if they are empty. FAILED_PRECONDITION if one has rows: its writes were acknowledged, and the
/// message says how to keep them.
absl::Status Freeze(HostAdmin& host, const MoveRange& shards);

/// The way back, from whatever was done.
absl::Status Thaw(HostAdmin& host, const MoveRange& shards);

/// While it lives, commits wait. Given up by the server when its connection ends.
class HeldCommits {
 public:
  /// UNAVAILABLE if some statement is in the way for longer than a second.
  static absl::StatusOr<HeldCommits> Hold(const Host& host, const Access& access);
  HeldCommits(HeldCommits&&) = default;

 private:
  explicit HeldCommits(std::unique_ptr<HostAdmin> host) : host_(std::move(host)) {}
  std::unique_ptr<HostAdmin> host_;
};

/// Removes databases of shards that have no tables any more.
absl::Status RemoveEmpty(HostAdmin& host, const MoveRange& shards);

}  // namespace kvstore::shardops
