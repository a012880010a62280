#pragma once

#include "absl/status/statusor.h"
#include "shardops/channel.h"
#include "shardops/copy.h"

namespace kvstore::shardops {

/// Copies the tables of shards from one MySQL server to another, whose databases exist already. Clients of
/// the source go on meanwhile, but for a moment at the beginning (BeginSnapshotAtPosition); the copy is a
/// consistent snapshot. It needs no program: the dump of one engine's clients does not fit the other's
/// servers.
///
/// options.databases must not be empty, and options.unlogged not be set. Triggers are not copied, since
/// shards have them only while a dataset is being migrated.
///
/// Returns the position in the source's binary log that the snapshot has. A copy that fails leaves what was
/// loaded so far; the caller removes it (DropDatabases). CANCELLED if options.progress returned false;
/// ABORTED if the target is not claimed by that connection any more; UNAVAILABLE if no moment without long
/// statements came within a minute, or a host does not answer.
absl::StatusOr<Position> CopyTables(const Host& source, const Host& target, const Access& access,
                                    const CopyOptions& options);

}  // namespace kvstore::shardops
