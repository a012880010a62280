#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "shardops/host.h"
#include "shardops/move_record.h"
#include "shardops/skipped_statements.h"

/// Takes shards out of use on a host, and puts them back: their tables are renamed to where no client looks
/// for them. The server itself then refuses every client that still has the old map, and our clients know
/// what that error means (mysql::Fleet::Run).
///
/// The host's slaves replicate the renames; a channel that copies the shards (Channel) skips them, which is
/// what `skipped` is for.
namespace kvstore::shardops {

/// Creates the databases that Freeze renames tables into ("db00017_moved").
absl::Status CreateMovedDatabases(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped);

/// Returns how many statements that channels must skip Freeze and a Thaw after it run, if nobody has created
/// tables in the shards' place.
size_t CountSkipped(const MoveRange& shards);

/// Renames all tables of the shards in one statement, "db00017"."pins" to "db00017_moved"."pins", and drops
/// the databases that they were in, so that nobody creates a table there. Tables that are renamed already
/// stay. Waits for transactions that use the tables, and new ones wait behind it: UNAVAILABLE if a
/// transaction takes longer than a second, and nothing has changed then.
///
/// While a shard was out of use, somebody may have created its database and a table under the old name.
/// Freeze and Thaw drop such a table if it is empty. If it has rows, those writes were acknowledged:
/// FAILED_PRECONDITION, and the message says how to keep them.
absl::Status Freeze(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped);

/// Undoes CreateMovedDatabases and Freeze, however far they got. Idempotent.
absl::Status Thaw(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped);

/// Drops those databases of the shards that have no tables.
absl::Status DropEmptyDatabases(HostAdmin& host, const MoveRange& shards);

}  // namespace kvstore::shardops
