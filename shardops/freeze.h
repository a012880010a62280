#pragma once

#include "absl/status/status.h"
#include "shardops/move_record.h"

/// The tables of shards are put where no client looks for them, and back. The server itself then refuses
/// whoever reads or writes them, and our clients know what that means (Fleet::Run).
///
/// Slaves of the host do the same; a channel that copies the shards (Channel) leaves it out.
namespace kvstore::shardops {

/// Makes the databases that take the tables.
absl::Status MakePlace(HostAdmin& host, const MoveRange& shards);

/// Renames all tables, at once: "db00017"."pins" is "db00017_moved"."pins". Those that are renamed already
/// stay. Waits for transactions that use them, and new ones wait behind: UNAVAILABLE if one takes longer than
/// a second, and nothing has changed then.
absl::Status Freeze(HostAdmin& host, const MoveRange& shards);

/// The way back, from whatever was done.
absl::Status Thaw(HostAdmin& host, const MoveRange& shards);

/// Removes databases of shards that have no tables any more.
absl::Status RemoveEmpty(HostAdmin& host, const MoveRange& shards);

}  // namespace kvstore::shardops
