#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "shardops/move_record.h"

/// Takes shards out of use on a host, and puts them back: their tables are renamed to where no client looks
/// for them. The server itself then refuses every client that still has the old map, and our clients know
/// what that error means (mysql::Fleet::Run).
///
/// The host's slaves replicate the renames; a channel that copies the shards (Channel) skips them.
namespace kvstore::shardops {

/// Creates the databases that Freeze renames tables into ("db00017_moved").
absl::Status CreateMovedDatabases(HostAdmin& host, const MoveRange& shards);

/// Renames all tables of the shards in one statement, "db00017"."pins" to "db00017_moved"."pins", and drops
/// the databases that they were in, so that nobody creates a table there. Tables that are renamed already
/// stay. Waits for transactions that use the tables, and new ones wait behind it: UNAVAILABLE if a
/// transaction takes longer than a second, and nothing has changed then.
///
/// While a shard was out of use, somebody may have created its database and a table under the old name.
/// Freeze and Thaw drop such a table if it is empty. If it has rows, those writes were acknowledged:
/// FAILED_PRECONDITION, and the message says how to keep them.
absl::Status Freeze(HostAdmin& host, const MoveRange& shards);

/// Undoes CreateMovedDatabases and Freeze, however far they got. Idempotent.
absl::Status Thaw(HostAdmin& host, const MoveRange& shards);

/// Blocks all commits on a host while it lives. The server unblocks them also when this process dies, since
/// its connection ends then.
class BlockedCommits {
 public:
  /// UNAVAILABLE if a running statement is in the way for longer than a second.
  static absl::StatusOr<BlockedCommits> Block(const Host& host, const Access& access);
  BlockedCommits(BlockedCommits&&) = default;

 private:
  explicit BlockedCommits(std::unique_ptr<HostAdmin> host) : host_(std::move(host)) {}
  std::unique_ptr<HostAdmin> host_;
};

/// Drops those databases of the shards that have no tables.
absl::Status DropEmptyDatabases(HostAdmin& host, const MoveRange& shards);

}  // namespace kvstore::shardops
